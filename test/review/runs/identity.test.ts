/** Findings of several pushes, whose differences git makes. */
import t, { type Test } from 'tap';
import { parseDiff } from '../../../src/review/anchors/index.ts';
import type { Change } from '../../../src/review/git/index.ts';
import { Repository, type Tree } from '../anchors/repository.ts';
import { finding, World } from './world.ts';

type Trees = Readonly<Record<string, Tree>>;

/** A pull request whose heads are these trees; its base is `base`. */
async function pullOf(t: Test, trees: Trees, { knowsCommits = true } = {}): Promise<World> {
  const diff = new Repository(t.testdir()).differ(t);
  const changes = new Map<string, Change>();
  for (const [from, before] of Object.entries(trees))
    for (const [to, after] of Object.entries(trees)) {
      const text = await diff(before, after);
      const files = parseDiff(text).map(({ path, oldPath, status }) => ({
        ...{ path, oldPath, status, isBinary: false, isSubmodule: false, isSymlink: false },
        ...{ additions: 1, deletions: 1, isNameBroken: false },
      }));
      changes.set(`${from} ${to}`, { diff: text, files, isDiffCut: false });
    }
  const change = (from: string, to: string): Change => changes.get(`${from} ${to}`) ?? { ...none };
  const world = await World.create(t, { Review: { MinSeverity: 'note' } });
  world.git.change = (head) => change('base', head);
  world.git.since = (head, since) => (knowsCommits ? change(since, head) : null);
  world.git.changeSince = (head, since) => (knowsCommits ? change(since, head) : null);
  world.git.headTexts = (head) => trees[head] ?? {};
  world.runs.start();
  return world;
}
const none: Change = { diff: '', files: [], isDiffCut: false };

/** Reviews a head. @returns titles of the findings, and reasons of those that were left out */
async function reviewed(world: World, head: string, findings: readonly object[]) {
  world.agent.findings = () => findings.map((each) => finding(each));
  if (world.forge.pull !== 'gone' && world.forge.pull.headSha !== head) world.forge.push(head);
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  const runId = await world.dispatch('mention', 'incremental');
  await world.ended(runId);
  const draft = await world.store.draftOfRun(runId);
  return {
    taken: draft?.findings.map(({ title, line }) => `${title}:${line}`) ?? [],
    dropped: draft?.dropped.map(({ title, line, reason }) => `${title}:${line} ${reason}`) ?? [],
    draft,
  };
}

const body = (name: string) =>
  `function ${name}(input) {\n  // ${name} begins\n  // ${name} goes on\n  return eval(input);\n  // ${name} ends\n}\n\n`;
const evals = { 'head-1': { 'src/a.js': body('one') + body('two') } };
const oldText = '  return eval(input);';
const at = (name: string, line: number, title = `eval of user input in ${name}`) => ({
  ...{ path: 'src/a.js', oldText, line, title },
});

for (const knowsCommits of [true, false])
  t.test(
    `different findings with the same text are all published, ${knowsCommits ? 'by the' : 'without a'} comparison of commits`,
    async (t) => {
      const world = await pullOf(
        t,
        { base: {}, ...evals, 'head-2': { 'src/a.js': body('zero') + body('one') + body('two') + body('three') } },
        { knowsCommits },
      );
      const first = [at('one', 4), at('two', 11), at('one', 4, 'Missing length limit in one')];
      t.match(await reviewed(world, 'head-1', first), {
        taken: ['eval of user input in one:4', 'eval of user input in two:11', 'Missing length limit in one:4'],
        dropped: [],
      });
      t.match(await reviewed(world, 'head-2', [at('one', 11), at('three', 25), at('two', 18, 'eval of user input')]), {
        taken: ['eval of user input in three:25'],
        dropped: ['eval of user input in one:11 alreadyPublished', 'eval of user input:18 alreadyPublished'],
      });
    },
  );

t.test('findings of one review with the same text, lines and title are merged, and the draft says so', async (t) => {
  const world = await pullOf(t, { base: {}, ...evals });
  const { draft, ...found } = await reviewed(world, 'head-1', [
    { ...at('one', 4), severity: 'minor' },
    { ...at('one', 4, 'eval of the user input'), severity: 'critical' },
    { ...at('one', 4, '入力値の長さを確認していない') },
    { ...at('one', 4, '入力値の型を確認していない') },
  ]);
  t.strictSame(found, {
    taken: ['eval of the user input:4', '入力値の長さを確認していない:4', '入力値の型を確認していない:4'],
    dropped: ['eval of user input in one:4 merged'],
  });
  t.equal(draft?.dropped[0]?.sameAs, draft?.findings[0]?.findingId);
});

t.test('a severe problem is published at the place of a note that a person skipped; the note is not', async (t) => {
  const world = await pullOf(t, { base: {}, ...evals, 'head-2': { 'src/a.js': `// top\n${body('one')}` } });
  world.agent.findings = () => [finding({ ...at('one', 4), severity: 'note' }), finding(at('two', 11))];
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  const draft = await world.store.draftOfRun(runId);
  const note = draft?.findings.find(({ severity }) => severity === 'note');
  if (!draft || !note) throw new Error('there is no note');
  await world.store.updateFinding(note.findingId, { status: 'skipped' });
  await world.runs.publish(draft.draftId, { override: true });
  await world.until(async () => (await world.store.draft(draft.draftId))?.status === 'published');
  const again = [{ ...at('one', 5), severity: 'note' }, at('one', 5)];
  t.match(await reviewed(world, 'head-2', again), {
    taken: ['eval of user input in one:5'],
    dropped: ['eval of user input in one:5 skipped'],
  });
});

t.test('a finding is not published again, and stays open, when a push moves its file', async (t) => {
  const text = 'start();\nprepare(1);\nprepare(2);\nbad();\nend();\n';
  const world = await pullOf(t, {
    base: {},
    'head-1': { 'b.js': text },
    'head-2': { 'lib/moved.js': text },
    'head-3': { 'lib/again.js': `// moved\n${text}` },
  });
  const bad = (path: string, line: number) => ({ path, line, oldText: 'bad();', title: 'bad is called' });
  t.match(await reviewed(world, 'head-1', [bad('b.js', 4)]), { taken: ['bad is called:4'] });
  for (const [head, path, line] of [
    ['head-2', 'lib/moved.js', 4],
    ['head-3', 'lib/again.js', 5],
  ] as const) {
    t.match(await reviewed(world, head, [bad(path, line)]), {
      taken: [],
      dropped: [`bad is called:${line} alreadyPublished`],
    });
    t.equal((await world.store.openFindings((await world.item()).itemId)).length, 1, head);
  }
  t.match(await reviewed(world, 'head-3', []), { taken: [] });
  t.equal((await world.store.openFindings((await world.item()).itemId)).length, 1, 'its lines are not gone');
});

t.test('equal findings at equal places are each published when git no longer has the earlier head', async (t) => {
  const block = 'begin();\nprepare();\neval(input);\nfinish();\nend();\n';
  const trees = { base: {}, 'head-1': { 'a.js': block }, 'head-2': { 'a.js': block.repeat(3) } };
  const world = await pullOf(t, trees, { knowsCommits: false });
  const evalAt = (line: number) => ({ path: 'a.js', oldText: 'eval(input);', line, title: 'eval of input' });
  t.match(await reviewed(world, 'head-1', [evalAt(3)]), { taken: ['eval of input:3'] });
  t.match(await reviewed(world, 'head-2', [evalAt(3), evalAt(8), evalAt(13)]), {
    taken: ['eval of input:8', 'eval of input:13'],
    dropped: ['eval of input:3 alreadyPublished'],
  });
  t.match(await reviewed(world, 'head-2', [evalAt(3), evalAt(8), evalAt(13)]), {
    taken: [],
    dropped: ['3', '8', '13'].map((line) => `eval of input:${line} alreadyPublished`),
  });
});

t.test('a finding is known in a file that a forced push moves when git no longer has the earlier head', async (t) => {
  const text = 'start();\nprepare(1);\nprepare(2);\nbad();\nend();\n';
  const trees = {
    base: { 'other.js': 'other();\n' },
    'head-1': { 'b.js': text, 'other.js': 'other();\n' },
    'head-2': { 'lib/moved.js': text, 'other.js': `other();\n${text}` },
  };
  const world = await pullOf(t, trees, { knowsCommits: false });
  const bad = (path: string, line: number, title = 'bad is called') => ({ path, line, oldText: 'bad();', title });
  t.match(await reviewed(world, 'head-1', [bad('b.js', 4)]), { taken: ['bad is called:4'] });
  t.match(await reviewed(world, 'head-2', [bad('lib/moved.js', 4), bad('other.js', 5, 'end is missing')]), {
    taken: ['end is missing:5'],
    dropped: ['bad is called:4 alreadyPublished'],
  });
});

t.test('a finding whose title and severity a person edited is not published again', async (t) => {
  const world = await pullOf(t, { base: {}, ...evals, 'head-2': { 'src/a.js': `// top\n${body('one')}` } });
  world.agent.findings = () => [finding({ ...at('one', 4), severity: 'critical' })];
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  const draft = await world.store.draftOfRun(runId);
  const [first] = draft?.findings ?? [];
  if (!draft || !first) throw new Error('there is no finding');
  await world.store.updateFinding(first.findingId, { title: 'Please parse instead', severity: 'minor' });
  await world.runs.publish(draft.draftId, { override: true });
  await world.until(async () => (await world.store.draft(draft.draftId))?.status === 'published');
  const again = [{ ...at('one', 5), severity: 'critical' }, at('one', 5, 'Missing length limit')];
  t.match(await reviewed(world, 'head-2', again), {
    taken: ['Missing length limit:5'],
    dropped: ['eval of user input in one:5 alreadyPublished'],
  });
});

t.test('a finding without a line in the diff stays in the summary of each later review', async (t) => {
  const world = await pullOf(t, { base: {}, ...evals, 'head-2': { 'src/a.js': `// top\n${body('one')}` } });
  world.agent.place = ({ title }) =>
    title === 'Unplaced' ? { placement: 'summary', reason: 'outsideDiff' } : undefined;
  const unplaced = { path: 'src/z.js', title: 'Unplaced', body: 'Its text.', oldText: 'x' };
  await reviewed(world, 'head-1', [unplaced]);
  t.match(world.forge.of('summary').at(-1)?.request, { body: /Unplaced.*\n {2}Its text/ });
  t.match(await reviewed(world, 'head-2', [unplaced, at('one', 5)]), {
    taken: ['eval of user input in one:5'],
    dropped: ['Unplaced:undefined alreadyPublished'],
  });
  t.match(world.forge.of('summary').at(-1)?.request, { body: /1 of before still open[\s\S]*Unplaced.*\n {2}Its text/ });
});

t.test('a draft lists the findings of replaced and refused drafts, without a secret', async (t) => {
  const token = ['ghp', 'q8Zt3LmX0vRb7NcKp2YwHs5JdFg9UeTa1CiO'].join('_');
  const world = await pullOf(t, { base: {}, ...evals });
  const of = { severity: 'major', path: 'src/a.js', side: 'RIGHT', line: 4 } as const;
  world.agent.withdrawn = [
    { ...of, title: 'Left out', reason: 'withdrawn' },
    { ...of, title: `Key ${token}`, reason: 'notTaken' },
  ];
  const { draft } = await reviewed(world, 'head-1', [at('one', 4)]);
  t.match(draft, {
    blockedBy: null,
    dropped: [
      { title: 'Left out', reason: 'withdrawn', line: 4 },
      { title: '(Withheld: it seems to contain a secret.)', reason: 'notTaken' },
    ],
  });
});
