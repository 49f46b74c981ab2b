/** Assignment of the agent, and the draft from its submission. */
import t from 'tap';
import { compose, resolutionsOf } from '../../../src/review/runs/compose.ts';
import type { ReviewNotes } from '../../../src/review/runs/notes.ts';
import { leakIn } from '../../../src/review/runs/plan.ts';
import type { StoredFinding } from '../../../src/review/store/index.ts';
import { changeTo, finding, World } from './world.ts';

t.test('the agent receives the minimum severity of the settings or of the base commit', async (t) => {
  const world = await World.create(t, { Review: { MinSeverity: 'major' } });
  world.runs.start();
  await world.ended(await world.dispatch('manual'));
  world.git.baseFiles = { '.oratorio-review.json': '{"minSeverity":"critical"}' };
  world.forge.push('head-2');
  if (world.forge.pull !== 'gone') await world.store.upsertItem(world.forge.pull);
  await world.ended(await world.dispatch('manual'));
  t.match(world.agent.asked, [{ minSeverity: 'major' }, { minSeverity: 'critical' }]);
});

t.test('files marked as generated in the base commit are not reviewed; the head cannot mark files', async (t) => {
  const world = await World.create(t);
  world.git.baseFiles = { '.gitattributes': 'src/*.ts linguist-generated\n' };
  world.runs.start();
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  t.equal(world.agent.asked.length, 0);
  t.match(await world.store.draftOfRun(runId), { skippedFiles: [{ path: 'src/a.ts', reason: 'generated' }] });
});

t.test('a suggestion retains decorators, and is dropped with invisible characters', async (t) => {
  const world = await World.create(t);
  world.agent.findings = () => [
    finding({ newText: '@inject(value) use(value); // fixes #7' }),
    finding({ title: 'Another', oldText: 'start();', newText: 'start(\u202e);' }),
  ];
  world.runs.start();
  const runId = await world.dispatch();
  await world.ended(runId);
  t.match(await world.store.draftOfRun(runId), {
    blockedBy: null,
    findings: [{ kind: 'suggestion', newText: '@inject(value) use(value); // fixes #7' }, { kind: 'comment' }],
  });
  await world.send();
  t.match(JSON.stringify(world.forge.of('review')), '@inject(value) use(value); // fixes #7\\n```');
});

t.test('an edited suggestion that cannot replace its lines is a comment, and the draft says so', async (t) => {
  const world = await World.create(t);
  const loose = { oldText: 'start();\nuse(value);', newText: 'start();\ncheck(value);\nuse(value);' };
  world.git.change = () => changeTo('head-1', 'src/a.ts', ['start(); ', 'use(value); ']);
  world.agent.findings = () => [finding({ title: 'Loose', ...loose }), finding({ newText: 'use(1);', line: 3 })];
  world.runs.start();
  const runId = await world.dispatch('manual');
  await world.ended(runId);
  const draft = await world.store.draftOfRun(runId);
  if (!draft) throw new Error('there is no draft');
  t.match(draft.findings, [{ kind: 'suggestion' }, { kind: 'suggestion' }], 'positive control');
  const [first, second] = draft.findings;
  await world.store.updateFinding(first?.findingId ?? '', { newText: 'start();\nother(value);' });
  await world.store.updateFinding(second?.findingId ?? '', { newText: 'use(2);' });
  await world.runs.publish(draft.draftId, { override: true });
  await world.until(async () => (await world.store.draft(draft.draftId))?.status === 'published');
  const [loosely, exactly] = (world.forge.of('review')[0]?.request['comments'] ?? []) as readonly { body: string }[];
  t.match(loosely?.body, /Loose/);
  t.notMatch(loosely?.body, /```suggestion/);
  t.match(exactly?.body, /```suggestion\nuse\(2\);/);
  t.strictSame((await world.store.draft(draft.draftId))?.warnings, [
    'src/a.ts: The change cannot replace the lines of the file and is published as a comment only.',
  ]);
});

t.test('a secret in a suggestion blocks the draft, also after an edit by a user', async (t) => {
  const token = ['ghp', 'q8Zt3LmX0vRb7NcKp2YwHs5JdFg9UeTa1CiO'].join('_');
  const world = await World.create(t);
  world.agent.findings = () => [finding({ newText: `use('${token}');` })];
  world.runs.start();
  const runId = await world.dispatch();
  await world.ended(runId);
  const draft = await world.store.draftOfRun(runId);
  t.match(draft, { blockedBy: { code: 'draftContainsSecret' }, findings: [{ kind: 'comment' }] });
  t.same(world.forge.published, []);
  const [first] = draft?.findings ?? [];
  if (!draft || !first) throw new Error('there is no finding');
  t.match(leakIn({ ...draft, findings: [{ ...first, newText: token }] }, []), { code: 'draftContainsSecret' });
});

t.test('every failed attempt releases its worktree', async (t) => {
  const world = await World.create(t);
  let isFirst = true;
  world.agent.onReview = () => {
    if (isFirst) {
      isFirst = false;
      throw Object.assign(new Error('gone'), { code: 'agentConnectionLost', isRetryable: true });
    }
  };
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'done', attempt: 2 });
  t.same(world.git.released, [
    [runId, 'failed'],
    [runId, 'succeeded'],
  ]);
});

t.test('a review that fails between its worktree and the agent releases the worktree', async (t) => {
  const world = await World.create(t);
  const { prepare } = world.git;
  world.git.prepare = async (target) => ({
    ...(await prepare(target)),
    baseFiles: async () => {
      throw Object.assign(new Error('broken'), { code: 'gitFailed', isRetryable: false });
    },
  });
  world.runs.start();
  const runId = await world.dispatch();
  t.match(await world.ended(runId), { state: 'failed' });
  t.same(world.git.released, [[runId, 'failed']]);
});

const notes = (path: string, oldPath?: string): ReviewNotes => ({
  ...{ headSha: 'h', baseSha: 'b', sinceSha: null, summary: '', isNothing: false, resolved: [], withdrawn: [] },
  findings: [
    {
      findingId: 'new',
      finding: finding({ path }),
      anchor: { placement: 'inline', side: 'RIGHT', line: 3 },
      fingerprint: 'f',
      ...(oldPath !== undefined && { oldPath }),
    },
  ],
  ...{ earlierPlaces: {}, goneFindings: ['f-old'], minSeverity: 'minor', maxFindings: 10 },
  ...{ reviewedFiles: 1, totalFiles: 1, skippedFiles: [], warnings: [] },
});

t.test('a finding in a file that the change renames is not published again, and stays open', async (t) => {
  const known = { ...finding({ path: 'src/old.ts' }), ...{ findingId: 'f-old', side: 'RIGHT', line: 3 } };
  const facts = { itemId: 'i', draftId: 'd', open: [known as unknown as StoredFinding], refused: [], secrets: [] };
  t.match(compose(notes('src/new.ts', 'src/old.ts'), facts), {
    findings: [],
    dropped: [{ path: 'src/new.ts', line: 3, reason: 'alreadyPublished', sameAs: 'f-old' }],
  });
  t.same(resolutionsOf(notes('src/new.ts', 'src/old.ts'), facts.open), []);
  t.match(compose(notes('src/new.ts'), facts), { findings: [{}], dropped: [] }, 'of another file it is another one');
  t.match(resolutionsOf(notes('src/new.ts'), facts.open), [{ resolution: 'outdated' }]);
});

t.test('a run has no trace address before it has begun, or without a route', async (t) => {
  const world = await World.create(t);
  const waiting = await world.run(await world.dispatch('manual'));
  t.equal(await world.runs.traceUrl(waiting), undefined);
  t.equal(await world.runs.traceUrl({ ...waiting, threadId: 'thread-1' }), 'http://dashboard/workspace/hello#thread-1');
  t.equal(
    await world.runs.traceUrl({ ...waiting, threadId: 'thread-1', repositoryKey: 'github:github.com/a/b' }),
    undefined,
  );
});
