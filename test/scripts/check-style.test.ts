import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkStyle, findingsIn } from '../../scripts/check-style.ts';
import { helpFindings } from '../../scripts/style/help.ts';
import { stylePatterns } from '../../scripts/style/patterns.ts';
import { unresolvedReferences } from '../../scripts/style/references.ts';
import type { CommandSpec } from '../../src/cli/command.ts';

const sections = new Map([
  ['specification', new Set(['4', '4.2'])],
  ['design', new Set(['5a'])],
]);
const sign = '\u00a7';

/** A source with a text at line 3, in the place that the scope of a pattern applies to. */
function planted({ scope, example }: (typeof stylePatterns)[number]): string {
  const isComment = example.startsWith('/**');
  if (scope === 'comment' || scope === 'prose') {
    return `export const one = 1;\n\n${isComment ? example : `/** It works. ${example} */`}\n`;
  }
  return `export const one = 1;\n\n${example}\n`;
}

for (const rule of stylePatterns) {
  t.test(`a planted “${rule.example}” is found as ${rule.id}, with its file and line`, async (t) => {
    const found = findingsIn('src/x/planted.ts', planted(rule)).filter(({ id }) => id === rule.id);
    t.match(found, [{ file: 'src/x/planted.ts', line: 3, instead: rule.instead }]);
    t.match(found[0]?.reason, rule.reason);
  });
}

t.test('a phrase that is broken between two lines of a comment is found at its beginning', async (t) => {
  const source = '/**\n * Reads it when it is first looked\n * at, and not before.\n */\nexport {};\n';
  t.match(findingsIn('src/x.ts', source), [{ id: 'looked-at', line: 2 }]);
});

t.test('words in code spans, in names of other things and in data of tests are not found', async (t) => {
  t.same(findingsIn('src/x.ts', '// Calls `tellHub` for it.\nimport "./tell-hub.ts";\n'), []);
  t.same(findingsIn('docs/x.md', 'Run `tell`.\n\n```sh\ntell nobody\n```\n'), []);
  t.same(findingsIn('test/x.test.ts', "say('somebody told me');\n"), []);
});

t.test('a text and a document are searched like a comment', async (t) => {
  t.match(findingsIn('src/x.ts', "const text = 'Nobody is told';\n"), [
    { id: 'indefinite-pronoun', line: 1 },
    { id: 'told', line: 1 },
  ]);
  t.match(findingsIn('docs/x.md', '# Title\n\nIt is told.\n'), [{ id: 'told', line: 3 }]);
});

t.test('a section that is in no document is found; one that is, in any spelling, is not', async (t) => {
  const found = (text: string) => unresolvedReferences('src/x.ts', text, sections).map(({ line }) => line);
  t.same(found(`one\n// specification ${sign}9.9\n`), [2]);
  t.same(found(`// RFC 9110 ${sign}4\n`), [1]);
  t.same(found(`// ${sign}4.2 of nothing\n`), [1]);
  t.same(found(`// Specification ${sign}4.2 and ${sign}4, design ${sign}5a\n`), []);
  t.same(unresolvedReferences('docs/specification.md', `see [${sign}4.2](#x)`, sections), []);
});

t.test('help that is long, or that is no imperative, is found', async (t) => {
  const command = (describe: string, option: string): CommandSpec => ({
    name: 'up',
    describe: [describe, 'A second sentence may be as long as it must be, because it is a paragraph of its own.'],
    options: [{ name: 'init', describe: option }],
    examples: [],
    load: async () => ({ run: async () => 0 }),
  });
  t.same(helpFindings([command('Start everything.', 'Initialise the directory first')]), []);
  t.match(helpFindings([command('Start everything.', 'What needs approval')]), [{ id: 'help-imperative' }]);
  t.match(helpFindings([command('Show one two three four five six seven eight nine ten.', 'Show it')]), [
    { id: 'help-length' },
  ]);
});

t.test('a checkout is searched as a whole', async (t) => {
  const base = t.testdir({ docs: { 'specification.md': '# S\n\n## 4. Endpoints\n', 'design.md': '# D\n' } });
  mkdirSync(join(base, 'src', 'hub'), { recursive: true });
  writeFileSync(join(base, 'src', 'hub', 'x.ts'), `// Reports as specification ${sign}4 says.\n// Told to all.\n`);
  writeFileSync(join(base, 'src', 'hub', 'x.json'), `{"see": "specification ${sign}5"}\n`);
  const found = checkStyle(base).filter(({ id }) => !id.startsWith('help'));
  t.match(found, [
    { file: 'src/hub/x.json', line: 1, id: 'section' },
    { file: 'src/hub/x.ts', line: 2, id: 'told' },
  ]);
});
