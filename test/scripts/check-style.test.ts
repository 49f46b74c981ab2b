import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkStyle, findingsIn } from '../../scripts/check-style.ts';
import { beyondBudget, lowered, roomOf } from '../../scripts/style/budgets.ts';
import { helpFindings } from '../../scripts/style/help.ts';
import { measure, sample } from '../../scripts/style/measure.ts';
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

t.test('help that is long, or that is not an imperative, is found', async (t) => {
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

t.test('a title of a test is searched, and an id of docs/security.md in it is not found', async (t) => {
  const found = (title: string) => findingsIn('test/x.test.ts', `t.test('${title}', fn);\n`).map(({ id }) => id);
  t.same(found('regression: B5 B6 a question is withdrawn'), ['private-code', 'private-code']);
  t.same(found('a fault never reaches the actor (T1)'), ['private-code']);
  t.same(found('returns what it said'), ['what-clause']);
  // The id stands apart from its mark: security-page.test.ts takes both together for a test of the table.
  t.same(found(`regression: ${'M8'} a program that takes the port gets no token`), []);
});

t.test('a question, “what to do” and a number of things are not found', async (t) => {
  const found = (text: string) => findingsIn('docs/x.md', text).map(({ id }) => id);
  t.same(found('# What failed?\n\nThe error says what to do. No turn is running, and there is no other.\n'), []);
  t.same(found('The directory is no workspace. It says what failed.\n'), ['what-clause', 'is-no']);
});

t.test('a room fails with more findings than its budget, and lists all of them', async (t) => {
  const one = { file: 'src/hub/x.ts', line: 1, id: 'anew', reason: '', instead: '' };
  const two = { ...one, file: 'src/hub/y/z.ts' };
  t.same(beyondBudget([one, two], { 'src/hub': { anew: 2 } }), new Map());
  const title = 'src/hub has 2 findings of anew, and may have 1:';
  t.same(beyondBudget([one, two], { 'src/hub': { anew: 1 } }), new Map([[title, [one, two]]]));
  t.same(
    [...beyondBudget([one], { 'src/agent': { anew: 1 } }).values()],
    [[one]],
    'a room without a budget may have none',
  );
  t.same(lowered({ 'src/hub': { anew: 5, told: 3 }, test: { anew: 1 } }, [one]), { 'src/hub': { anew: 1 } });
  t.same(lowered({}, [one]), {}, 'a budget never rises');
  t.same(['src/lib.ts', 'machines/x.ts', 'docs/a/b.md', 'README.md'].map(roomOf), [
    'src/lib',
    'machines',
    'documents',
    'documents',
  ]);
});

t.test('the measure counts words of comments and documents, and a sample is drawn by its seed', async (t) => {
  const texts = new Map([
    ['src/hub/x.ts', "/** Returns what it said last. */\nexport const x = 'what is said';\n// Reads `what` it is.\n"],
    ['docs/x.md', 'Two words.\n'],
  ]);
  const findings = [...texts].flatMap(([file, source]) => findingsIn(file, source));
  t.match(measure(texts, findings).split('\n'), [
    /words .*“what” .*per 10,000 .*in texts .*others/,
    /^docs\/x\.md +2 +0 +0\.0 +0 +0$/,
    /^src\/hub +8 +1 +1250\.0 +1 +0$/,
    /^All comments +8 +1/,
    /^All documents +2 +0/,
  ]);
  t.equal(sample(texts, 5, 1).length, 2);
  t.same(sample(texts, 1, 7), sample(texts, 1, 7));
});
