/** Colours of code: the text stays unchanged, and none of it takes long. */
import fc from 'fast-check';
import t from 'tap';
import { isColourable, maxColouredChars } from '../../src/ui/views/chat/code/colours.ts';
import { diffColours } from '../../src/ui/views/chat/code/diff-colours.ts';
import { languageNamed, languageNames, languageOfFile } from '../../src/ui/views/chat/code/language-names.ts';
import { colouredLines } from '../../src/ui/views/chat/code/languages.ts';
import { rowsOfChange } from '../../src/ui/views/chat/data/diff-rows.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_125 };
const textOf = (lines: ReturnType<typeof colouredLines>) =>
  lines.map((line) => line.map(({ text }) => text).join('')).join('\n');

const piece = fc.oneof(
  fc.constantFrom('"', "'", '`', '/*', '*/', '//', '#', '<a b="', '</', '<script>', '<!--', '${', '}', '(', '\n', '\\'),
  fc.constantFrom(
    'const x = ',
    'def f():',
    'SELECT 1',
    'key: ',
    '- ',
    '@@ -1 +1 @@',
    '1e9',
    'class A',
    '<<EOF\n',
    'r#"',
  ),
  fc.string({ maxLength: 5 }),
);

t.test('coloured code is the same code, in every language', (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...languageNames), fc.array(piece, { maxLength: 25 }), (language, pieces) => {
      const code = pieces.join('');
      return textOf(colouredLines(code, language)) === code;
    }),
    { ...seed, numRuns: 600 },
  );
  t.end();
});

t.test('words of a language have its colours, over several lines', async (t) => {
  const lines = colouredLines('const a = `x ${1}\ny`; // said\nclass Foo {}', 'typescript');
  const colourOf = (word: string) => lines.flat().find(({ text }) => text.trim() === word)?.colour;
  t.equal(colourOf('const'), 'keyword');
  t.equal(colourOf('1'), 'number');
  t.equal(colourOf('y`'), 'string');
  t.equal(colourOf('// said'), 'comment');
  t.equal(colourOf('Foo'), 'type');
});

t.test('languages are known by the word behind a fence and by the name of a file', async (t) => {
  t.equal(languageNamed('TS'), 'typescript');
  t.equal(languageNamed('constructor'), null);
  t.equal(languageOfFile('src/a.test.py'), 'python');
  t.equal(languageOfFile('docker/Dockerfile'), 'bash');
  t.equal(languageOfFile('LICENSE'), null);
  t.equal(languageOfFile(''), null);
});

t.test('large code, endless lines and long runs of empty lines are not coloured', async (t) => {
  t.equal(isColourable('x = 1\n'.repeat(100)), true);
  t.equal(isColourable('x'.repeat(5_000_000)), false);
  t.equal(isColourable('x = 1\n'.repeat(maxColouredChars)), false);
  t.equal(isColourable(`${'a'.repeat(2_000)}\nb`), false);
  t.equal(isColourable(`a${'\n'.repeat(100)}b`), false);
});

t.test('both sides of a diff are coloured as the code that they are', async (t) => {
  const rows = rowsOfChange({
    path: 'a.ts',
    before: '/* one\ntwo */\nconst a = 1;\n',
    after: '/* one\nzwei */\nconst a = 2;\n',
  });
  const colours = diffColours(rows, colouredLines);
  const of = (text: string) => [...colours].find(([row]) => row.text === text)?.[1];
  t.same(of('two */'), [{ text: 'two */', colour: 'comment' }]);
  t.same(of('zwei */'), [{ text: 'zwei */', colour: 'comment' }]);
  t.match(of('const a = 2;'), [{ text: 'const', colour: 'keyword' }]);
  t.equal(diffColours(rowsOfChange({ path: 'LICENSE', before: 'a', after: 'b' }), colouredLines).size, 0);
  t.equal(diffColours(rows, () => null).size, 0, 'without the languages there are no colours');
});
