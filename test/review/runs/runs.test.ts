import t from 'tap';
import { LeaseLostError } from '../../../src/review/store/index.ts';
import { quiet } from '../store/databases.ts';
import { World } from './world.ts';

t.test('a mention leads to one published review at the reviewed head', async (t) => {
  const world = await World.create(t, { Review: { CheckRun: true } });
  world.runs.start();
  const runId = await world.dispatch();
  const run = await world.ended(runId);
  t.match(run, { state: 'done', error: null, threadId: 'thread-1', turnId: 'turn-1', attempt: 1 });
  await world.send();
  const [review, ...others] = world.forge.of('review');
  t.same(others, []);
  t.match(review?.request, {
    owner: 'octo',
    name: 'hello',
    number: 1,
    commitId: 'head-1',
    comments: [{ path: 'src/a.ts', line: 3, side: 'RIGHT', body: /never checked/ }],
  });
  t.match(world.forge.of('summary'), [{ request: { body: /1 new finding/ } }]);
  t.match(
    world.forge.of('checkRun').map(({ request }) => [request['status'], request['conclusion']]),
    [
      ['in_progress', undefined],
      ['completed', 'neutral'],
    ],
  );
  const draft = await world.store.draftOfRun(runId);
  t.match(draft, { status: 'published', url: /review/, findings: [{ isPublished: true, commentId: Number }] });
  t.match(await world.item(), { reviewedHeadSha: 'head-1', summaryCommentId: 7 });
  t.same(world.git.released, [[runId, 'succeeded']]);
  await world.until(() => world.runs.active === 0);
});

t.test('a review requested on the page stays a draft until the user publishes it', async (t) => {
  const world = await World.create(t);
  world.runs.start();
  const runId = await world.dispatch('manual');
  t.match(await world.ended(runId), { state: 'done' });
  const draft = await world.store.draftOfRun(runId);
  t.match(draft, { status: 'draft', blockedBy: null });
  t.equal(await world.send(), 0, 'nothing is in the outbox');
  const { draftId = '' } = draft ?? {};
  await world.runs.publish(draftId, { override: false });
  await world.runs.publish(draftId, { override: false });
  await world.send();
  t.match(await world.store.draft(draftId), { status: 'published' });
  t.equal(world.forge.of('review').length, 1);
  await t.rejects(world.runs.publish(draftId, { override: true }), { code: 'invalidState' });
  await t.rejects(world.runs.discard(draftId), { code: 'invalidState' });
});

t.test('a failed claim is logged with the error and its stack', async (t) => {
  const failed = Promise.withResolvers<unknown>();
  const logger = { ...quiet, warn: (_text: string, fields?: object) => failed.resolve(fields) };
  const world = await World.create(t, {}, { logger });
  const error = new Error('the disk is gone');
  world.another('two', { ...world.store, claimRun: () => Promise.reject(error) }).start();
  t.equal(((await failed.promise) as { error: unknown }).error, error);
});

t.test('the work of a state begins when the state is saved', async (t) => {
  const world = await World.create(t);
  const seen: string[] = [];
  const note = async (step: string) => {
    const { rows } = await world.store.runs({ limit: 1 });
    seen.push(`${step}: ${rows[0]?.state}`);
  };
  Object.assign(world.git, { onPrepare: () => note('git.prepare'), verifyClean: () => note('git.verifyClean') });
  world.agent.onReview = () => note('agent.review');
  const { putDraft, putWrite } = world.store;
  world.store.putDraft = async (...given) => {
    await note('putDraft');
    return putDraft(...given);
  };
  world.store.putWrite = async (...given) => {
    if (given[0].kind === 'review') await note('putWrite');
    return putWrite(...given);
  };
  world.runs.start();
  t.match(await world.ended(await world.dispatch()), { state: 'done' });
  t.strictSame(seen, [
    'git.prepare: preparing',
    'agent.review: reviewing',
    'git.verifyClean: reviewing',
    'putDraft: drafting',
    'putWrite: publishing',
  ]);
});

t.test('a state that cannot be saved begins no work', async (t) => {
  const world = await World.create(t);
  const { updateRun } = world.store;
  const states: unknown[] = [];
  world.store.updateRun = async (runId, lease, change) => {
    states.push(change.state);
    if (change.state === 'reviewing') throw new LeaseLostError('another process has it');
    return updateRun(runId, lease, change);
  };
  world.runs.start();
  await world.dispatch();
  await world.until(() => states.includes('reviewing') && world.runs.active === 0);
  t.same(world.agent.asked, []);
  t.equal(states.at(-1), 'reviewing', 'nothing is written after the lease is lost');
});
