/** Slips of models in edits: understood where they leave one place and one meaning, refused elsewhere. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { applyEdit, applyEdits } from '../../../src/agent/tools/files/edit-apply.ts';
import { createEditFile } from '../../../src/agent/tools/files/index.ts';
import { places, resultText, review, settings } from './file-tools.ts';

interface Slip {
  readonly slip: string;
  readonly file: string;
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll?: boolean;
  /** File after the edit; absent: it is refused. */
  readonly after?: string;
}

const python =
  'class A:\n    def one(self):\n        if self.x:\n            return 1\n        return 2\n\n    def two(self):\n        return 3\n';
const tabs = 'function one() {\n\tif (x) {\n\t\treturn 1;\n\t}\n}\n';
const twice = 'function one() {\n  return 1;\n}\n\nfunction two() {\n  return 1;\n}\n';
const curly = 'const title = “Hello” + name;\nconst range = 1–2;\n';

const slips: readonly Slip[] = [
  {
    slip: 'four blanks less on every line',
    file: python,
    oldText: 'def two(self):\n    return 3',
    newText: 'def two(self):\n    return 4',
    after: python.replace('return 3', 'return 4'),
  },
  {
    slip: 'blanks in the place of tabs',
    file: tabs,
    oldText: '  if (x) {\n    return 1;\n  }',
    newText: '  if (x) {\n    return 2;\n  }',
    after: tabs.replace('return 1', 'return 2'),
  },
  {
    slip: 'blanks in the place of tabs, and a level more in the new text',
    file: tabs,
    oldText: '  if (x) {\n    return 1;\n  }',
    newText: '  if (x) {\n    if (y) {\n      return 2;\n    }\n  }',
    after: 'function one() {\n\tif (x) {\n\t\tif (y) {\n\t\t\treturn 2;\n\t\t}\n\t}\n}\n',
  },
  {
    slip: 'two blanks for four, a level more in the new text',
    file: python,
    oldText: '  def one(self):\n    if self.x:\n      return 1\n    return 2',
    newText: '  def one(self):\n    if self.x:\n      if self.y:\n        return 0\n      return 1\n    return 2',
    after: python.replace(
      '        if self.x:\n            return 1',
      '        if self.x:\n            if self.y:\n                return 0\n            return 1',
    ),
  },
  {
    slip: 'only the old text is indented wrongly',
    file: python,
    oldText: 'def two(self):\nreturn 3',
    newText: '    def two(self):\n        x = 1\n        return 3',
    after: python.replace('        return 3', '        x = 1\n        return 3'),
  },
  {
    slip: 'indentation that does not map one to one',
    file: python,
    oldText: '  def one(self):\n  if self.x:\n      return 1',
    newText: '  def one(self):\n  if self.y:\n      return 1',
  },
  {
    slip: 'indentation, at two places',
    file: `${twice}${twice}`,
    oldText: 'function one() {\n    return 1;\n}',
    newText: 'function one() {\n    return 2;\n}',
  },
  {
    slip: 'plain quotes for typographic ones',
    file: curly,
    oldText: 'const title = "Hello" + name;',
    newText: 'const title = "Bye" + name;',
    after: curly.replace('“Hello”', '"Bye"'),
  },
  {
    slip: 'a plain dash for a typographic one, and another line repeated',
    file: curly,
    oldText: 'const title = "Hello" + name;\nconst range = 1-2;',
    newText: 'const title = "Hello" + name;\nconst range = 1-3;',
    after: 'const title = “Hello” + name;\nconst range = 1-3;\n',
  },
  {
    slip: 'typographic quotes for plain ones',
    file: "say('hi');\n",
    oldText: 'say(‘hi’);',
    newText: "say('bye');",
    after: "say('bye');\n",
  },
  {
    slip: 'a blank line before and after',
    file: 'one();\ntwo();\nthree();\n',
    oldText: '\ntwo();\n\n',
    newText: '\n2();\n\n',
    after: 'one();\n2();\nthree();\n',
  },
  {
    slip: 'a code fence around both',
    file: 'one();\ntwo();\n',
    oldText: '```js\ntwo();\n```',
    newText: '```js\n2();\n```',
    after: 'one();\n2();\n',
  },
  {
    slip: 'line numbers in both',
    file: 'one();\ntwo();\nthree();\n',
    oldText: '2| two();\n3| three();',
    newText: '2| 2();\n3| three();',
    after: 'one();\n2();\nthree();\n',
  },
  {
    slip: 'line numbers in the old text only',
    file: 'one();\ntwo();\nthree();\n',
    oldText: '  2\ttwo();\n  3\tthree();',
    newText: '2();\nthree();',
    after: 'one();\n2();\nthree();\n',
  },
  {
    slip: 'line feeds written out in both',
    file: 'one();\ntwo();\n',
    oldText: 'one();\\ntwo();',
    newText: '1();\\n2();',
    after: '1();\n2();\n',
  },
  {
    slip: 'line numbers that do not count up',
    file: 'one();\ntwo();\n',
    oldText: '2| one();\n7| two();',
    newText: 'x',
  },
  { slip: 'one line with a number before it', file: 'http\n', oldText: '8080: http', newText: '8081: http' },
  { slip: 'another word', file: python, oldText: '    def tow(self):', newText: '    def three(self):' },
  { slip: 'a word left out', file: python, oldText: 'def (self):\n        return 3', newText: 'x' },
  { slip: 'two blanks within a line', file: 'a  =  100;\n', oldText: 'a = 100;', newText: 'a = 200;' },
  { slip: 'another case', file: 'const Name = 1;\n', oldText: 'const name = 1;', newText: 'const name = 2;' },
  { slip: 'a line in the middle left out', file: python, oldText: 'if self.x:\n        return 2', newText: 'pass' },
  { slip: 'a comma more', file: 'f(a, b)\n', oldText: 'f(a, b,)', newText: 'f(a)' },
  { slip: 'lines in another order', file: 'one();\ntwo();\n', oldText: 'two();\none();', newText: 'x' },
  { slip: 'two distinctive characters', file: '  {\n  }\n', oldText: '{\n}', newText: '{ x }' },
  {
    slip: 'indentation with replaceAll',
    file: tabs,
    oldText: '  if (x) {\n    return 1;\n  }',
    newText: '  if (x) {}',
    replaceAll: true,
  },
  {
    slip: 'none',
    file: python,
    oldText: 'return 3',
    newText: 'return 4',
    after: python.replace('return 3', 'return 4'),
  },
  {
    slip: 'none, and the new text has signs of a replacement pattern',
    file: 'a\n',
    oldText: 'a',
    newText: "$& $1 $'",
    after: "$& $1 $'\n",
  },
  { slip: 'none, at every place', file: 'a b a\n', oldText: 'a', newText: 'c', replaceAll: true, after: 'c b c\n' },
  { slip: 'none, to delete', file: 'one();\ntwo();\n', oldText: 'two();\n', newText: '', after: 'one();\n' },
  {
    slip: 'line feeds for CRLF',
    file: 'one();\r\ntwo();\r\n',
    oldText: 'one();\ntwo();',
    newText: '1();\ntwo();',
    after: '1();\r\ntwo();\r\n',
  },
  {
    slip: 'CRLF for line feeds',
    file: 'one();\ntwo();\n',
    oldText: 'one();\r\ntwo();',
    newText: '1();\r\ntwo();',
    after: '1();\ntwo();\n',
  },
  {
    slip: 'line feeds in a file with both line ends',
    file: 'one();\r\ntwo();\r\nthree();\nfour();\n',
    oldText: 'three();\nfour();',
    newText: '3();\nfour();',
    after: 'one();\r\ntwo();\r\n3();\nfour();\n',
  },
  {
    slip: 'blanks at line ends left out',
    file: 'one();  \ntwo();\nthree();\n',
    oldText: 'one();\ntwo();',
    newText: 'one();\n2();',
    after: 'one();  \n2();\nthree();\n',
  },
  {
    slip: 'blanks at line ends added',
    file: 'one();\ntwo();\n',
    oldText: 'one();  \ntwo(); ',
    newText: '1();\ntwo();',
    after: '1();\ntwo();\n',
  },
  {
    slip: 'blanks on an empty line',
    file: 'one();\n\ntwo();\n',
    oldText: 'one();\n    \ntwo();',
    newText: 'one();\n    \n2();',
    after: 'one();\n\n2();\n',
  },
  {
    slip: 'a plain blank for a non-breaking one',
    file: 'const price = "10\u00a0EUR";\n',
    oldText: 'const price = "10 EUR";',
    newText: 'const price = "11 EUR";',
    after: 'const price = "11 EUR";\n',
  },
  {
    slip: 'a hyphen for a long dash',
    file: '# Part one — begin\n\nText.\n',
    oldText: '# Part one - begin',
    newText: '# Part 1 - begin',
    after: '# Part 1 - begin\n\nText.\n',
  },
  {
    slip: 'tabs for blanks',
    file: python,
    oldText: '\tdef two(self):\n\t\treturn 3',
    newText: '\tdef two(self):\n\t\treturn 4',
    after: python.replace('return 3', 'return 4'),
  },
  {
    slip: 'a level of indentation more on every line',
    file: tabs,
    oldText: '\t\tif (x) {\n\t\t\treturn 1;\n\t\t}',
    newText: '\t\tif (x) {\n\t\t\treturn 2;\n\t\t}',
    after: tabs.replace('return 1', 'return 2'),
  },
  {
    slip: 'indentation, to delete',
    file: python,
    oldText: '  def one(self):\n    if self.x:\n      return 1\n    return 2\n',
    newText: '',
    after: 'class A:\n\n    def two(self):\n        return 3\n',
  },
  {
    slip: 'indentation and quotes',
    file: 'if (x) {\n    say(“hello there”);\n    go();\n}\n',
    oldText: 'if (x) {\n  say("hello there");\n  go();\n}',
    newText: 'if (x) {\n  say("hello there");\n  stay();\n}',
    after: 'if (x) {\n    say(“hello there”);\n    stay();\n}\n',
  },
  {
    slip: 'a code fence without a language',
    file: 'one();\ntwo();\n',
    oldText: '```\none();\ntwo();\n```',
    newText: '```\n1();\ntwo();\n```',
    after: '1();\ntwo();\n',
  },
  {
    slip: 'line numbers with arrows',
    file: 'one();\ntwo();\nthree();\n',
    oldText: '  1→one();\n  2→two();',
    newText: '  1→one();\n  2→2();',
    after: 'one();\n2();\nthree();\n',
  },
  {
    slip: 'indentation, to delete in a file of CRLF',
    file: 'if (x) {\r\n    one();\r\n    two();\r\n}\r\n',
    oldText: '  one();\n  two();\n',
    newText: '',
    after: 'if (x) {\r\n}\r\n',
  },
  { slip: 'a place too many', file: twice, oldText: '  return 1;', newText: '  return 2;' },
  {
    slip: 'blanks at line ends, at two places',
    file: 'a();  \nb();\na();\t\nb();\n',
    oldText: 'a();\nb();',
    newText: 'x',
  },
  { slip: 'quotes, at two places', file: 'say(“hello”);\nsay(“hello”);\n', oldText: 'say("hello");', newText: 'x' },
  {
    slip: 'quotes, with replaceAll',
    file: 'say(“hello”);\n',
    oldText: 'say("hello");',
    newText: 'x',
    replaceAll: true,
  },
  { slip: 'a double quote for a single one', file: "say('hello');\n", oldText: 'say("hello");', newText: 'x' },
  { slip: 'two lines in one', file: 'one();\ntwo();\n', oldText: 'one(); two();', newText: 'x' },
  { slip: 'one line in two', file: 'one(); two();\n', oldText: 'one();\ntwo();', newText: 'x' },
  { slip: 'semicolons left out', file: 'one();\ntwo();\nthree();\n', oldText: 'one()\ntwo()\nthree()', newText: 'x' },
  { slip: 'a line more', file: 'one();\nthree();\n', oldText: 'one();\ntwo();\nthree();', newText: 'x' },
  { slip: 'another comment', file: '// Adds them.\nadd();\n', oldText: '// Adds it.\nadd();', newText: 'x' },
  { slip: 'signs of HTML written out', file: 'if (a < b) {}\n', oldText: 'if (a &lt; b) {}', newText: 'x' },
  { slip: 'quotes written out', file: 'say("hello");\n', oldText: 'say(\\"hello\\");', newText: 'say(\\"bye\\");' },
  {
    slip: 'another form of the same letter',
    file: 'caf\u00e9();\n',
    oldText: 'cafe\u0301();',
    newText: 'x',
    after: 'x\n',
  },
  { slip: 'three dots for an ellipsis', file: 'say("wait…");\n', oldText: 'say("wait...");', newText: 'x' },
  { slip: 'lines left out with dots', file: python, oldText: 'def one(self):\n    ...\n    return 2', newText: 'x' },
  {
    slip: 'an edit that was made before',
    file: 'const one = 1;\n',
    oldText: 'const one = 2;',
    newText: 'const one = 1;',
  },
];

for (const { slip, file, oldText, newText, replaceAll = false, after } of slips) {
  t.test(`${after === undefined ? 'refused' : 'understood'}: ${slip}`, async (t) => {
    const result = applyEdit(file, { oldText, newText, replaceAll });
    if (after === undefined)
      t.match(result, { ok: false, problem: /Copy oldText|nothing in it is similar|places|exactly|already is/ });
    else t.equal(result.ok ? result.text : result.problem, after);
  });
}

/** Made once: an arbitrary of a pattern takes longer to make than its values. */
const word = fc.stringMatching(/^[a-z]{3,8}$/);

/** Python-like code: the indentation is the program. */
const block = (depth: number): fc.Arbitrary<readonly string[]> =>
  fc
    .array(fc.tuple(fc.constantFrom('if', 'for', 'while'), word, fc.boolean()), {
      minLength: 1,
      maxLength: 3,
    })
    .chain((heads) =>
      fc.tuple(
        ...heads.map(([keyword, name, isDeep]) =>
          (isDeep && depth < 2 ? block(depth + 1) : fc.constant([`    call_${name}()`])).map((body) => [
            `${keyword} ${name}:`,
            ...body,
          ]),
        ),
      ),
    )
    .map((blocks) => blocks.flat().map((line) => (depth === 0 ? line : `    ${line}`)));

t.test('sixty slips have their verdict', async (t) => t.ok(slips.length >= 60, String(slips.length)));

t.test('property: an accepted edit with another indentation is the edit of a person', async (t) => {
  let accepted = 0;
  const property = fc.property(
    block(0),
    fc.nat(),
    fc.nat(),
    fc.constantFrom('', '  ', '\t', '        '),
    fc.constantFrom('  ', '\t', '    '),
    (lines, from, length, base, unit) => {
      const start = from % lines.length;
      const end = Math.min(lines.length, start + 1 + (length % 6));
      const own = lines.slice(start, end);
      const least = Math.min(...own.map((line) => /^ */.exec(line)?.[0].length ?? 0));
      /** Indents the lines as a model may write them: from another level, with another unit. */
      const slipped = own.map((line) => {
        const depth = ((/^ */.exec(line)?.[0].length ?? 0) - least) / 4;
        return `${base}${unit.repeat(depth)}${line.trimStart()}`;
      });
      const [first = '', ...rest] = slipped;
      const changed = [first.replace(/\w+/, 'changed'), ...rest];
      const meant = [own[0]?.replace(/\w+/, 'changed') ?? '', ...own.slice(1)];
      const file = lines.join('\n');
      const result = applyEdit(file, { oldText: slipped.join('\n'), newText: changed.join('\n'), replaceAll: false });
      if (!result.ok) return true;
      accepted += 1;
      // A text that is there twice is refused.
      const expected = [...lines.slice(0, start), ...meant, ...lines.slice(end)].join('\n');
      return result.text === expected || file.split(own.join('\n')).length > 2;
    },
  );
  fc.assert(property, { numRuns: 2_000 });
  t.ok(accepted > 500, `${accepted} were accepted`);
});

t.test('several edits are located in the original text, and are applied all or none', async (t) => {
  const file = 'one();\ntwo();\nthree();\n';
  const edit = (oldText: string, newText: string) => ({ oldText, newText, replaceAll: false });
  t.match(applyEdits(file, [edit('three();', '3();'), edit('one();', 'two();')]), {
    ok: true,
    text: 'two();\ntwo();\n3();\n',
  });
  t.match(applyEdits(file, [edit('one();', '1();'), edit('four();', '4();')]), {
    ok: false,
    problem: /^edit 2: oldText is not in the file/,
  });
  t.match(applyEdits(file, [edit('one();\ntwo();', 'x'), edit('two();\nthree();', 'y')]), {
    ok: false,
    problem: /^edits 1 and 2 overlap/,
  });
  t.match(applyEdits(file, [edit('one();', '1();'), edit('one();', '1();')]), { ok: false, problem: /overlap/ });
});

t.test(
  'several edits are taken under other names and as JSON in a text, and none is refused with a reason',
  async (t) => {
    const { workspace, at, put } = places(t);
    const tool = createEditFile(settings());
    const edits = [
      { old_string: 'one();', new_string: '1();' },
      { oldStr: 'three();', newStr: '3();', all: 'false' },
    ];
    for (const given of [edits, JSON.stringify(edits)]) {
      put('f', 'one();\ntwo();\nthree();\n');
      await resultText(tool, { path: 'f', edits: given }, workspace);
      t.equal(readFileSync(at('f'), 'utf8'), '1();\ntwo();\n3();\n');
    }
    for (const args of [{ path: 'f' }, { path: 'f', oldText: 'x' }, { path: 'f', edits: [] }]) {
      t.match((await review(tool, args, workspace)).result, { isError: true, text: /oldText and newText, or edits/ });
    }
    t.match(tool.parse({ path: 'f', edits: [{ oldText: 'x' }] }), { ok: false, error: /edits/ });
  },
);
