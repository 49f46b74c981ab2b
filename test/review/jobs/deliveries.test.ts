import t, { type Test } from 'tap';
import { ReviewError } from '../../../src/review/errors.ts';
import type { ReviewStore } from '../../../src/review/store/index.ts';
import { WebhookIntake } from '../../../src/review/webhook/index.ts';
import { quiet } from '../store/databases.ts';
import { commentPayload, deliverTo, reviewPayload, threadPayload } from '../webhook/harness.ts';
import { facts, forbidden, pausesEnd, repositoryKey, type Scene, scene, unreachable } from './harness.ts';

const repository = { full_name: 'octo/hello', html_url: 'https://github.com/octo/hello' };
const pullPayload = (action: string, number = 7) => ({
  ...{ action, repository, number, pull_request: { number } },
  sender: { login: 'alice' },
});

/** The real intake, which receives the deliveries. */
function intakeOf(t: Test, world: Scene) {
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  return (event: string, body: object) => deliverTo(intake, { event, body });
}
const outcomes = async ({ store }: Scene) =>
  (await store.deliveries({ limit: 50 })).rows.map(({ outcome, reason }) => [outcome, reason ?? null]);

t.test('a delivery reads the pull request, stores it and scans for due reviews', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  t.equal((await deliver('pull_request', pullPayload('opened'))).status, 202);
  await world.idle();
  t.match(await world.store.itemByNumber(repositoryKey, 7), { headSha: 'head-7', state: 'open' });
  t.ok(world.runs.ticks > 0);
  t.same(await outcomes(world), [['processed', null]]);
  const events = await world.store.events(0, 50);
  t.ok(events.some(({ kind }) => kind === 'item.changed'));
});

t.test('every delivery of a burst about one pull request is settled', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  await Promise.all(Array.from({ length: 20 }, () => deliver('pull_request', pullPayload('synchronize'))));
  await world.idle();
  t.ok(world.forge.reads <= 3, `${world.forge.reads} reads`);
  t.same(new Set((await outcomes(world)).map(([outcome]) => outcome)), new Set(['processed']));
});

t.test('outcomes of deliveries are published as events', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  await deliver('pull_request', pullPayload('opened'));
  await world.idle();
  await world.worker.stop();
  const received = (await world.store.events(0, 50)).filter(({ kind }) => kind === 'delivery.received');
  t.match(received.at(-1)?.data, { count: Number, deliveries: [{ outcome: 'processed' }] });
});

t.test('a closed or deleted pull request cancels its waiting review', async (t) => {
  for (const gone of [false, true]) {
    const world = await scene(t);
    const deliver = intakeOf(t, world);
    const { item } = await world.store.upsertItem(facts(7));
    const { run } = await world.runs.dispatch(item, { trigger: 'auto', scope: 'full', focus: null });
    world.forge.pulls.set(7, gone ? 'gone' : facts(7, { state: 'merged', updatedAt: item.updatedAt + 1 }));
    await deliver('pull_request', pullPayload('closed'));
    await world.idle();
    t.same(world.runs.cancelled, [run.runId]);
    t.match(await world.store.item(item.itemId), { state: gone ? 'closed' : 'merged' });
  }
});

t.test(
  'a retryable failure of the forge is retried, a permanent one becomes a dead job, and both are visible',
  async (t) => {
    const world = await scene(t);
    const deliver = intakeOf(t, world);
    // Not tried again by itself before the test has looked.
    world.forge.readFailures.push(unreachable(600_000));
    await deliver('pull_request', pullPayload('opened'));
    while (world.forge.reads === 0) await world.idle();
    await world.idle();
    t.same(await outcomes(world), [['queued', null]], 'it has not come to its end');
    await pausesEnd(world);
    while (world.forge.reads < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    await world.idle();
    t.same(await outcomes(world), [['processed', null]]);

    world.forge.readFailures.push(forbidden());
    await deliver('pull_request', pullPayload('synchronize'));
    await world.idle();
    t.match(await outcomes(world), [['failed', 'forbidden'], ['processed']]);
    t.match(await world.store.deadJobs(5), [{ kind: 'delivery', attempt: 1, error: /^forbidden: / }]);
  },
);

t.test('a re-requested check run leads to a full review, for a fork by its external id', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  const { item } = await world.store.upsertItem(facts(7));
  const { run } = await world.runs.dispatch(item, { trigger: 'auto', scope: 'full', focus: null });
  const checkRun = (numbers: number[], external_id: string | null) => ({
    ...{ action: 'rerequested', repository, sender: { login: 'alice' } },
    check_run: { head_sha: 'a'.repeat(40), external_id, pull_requests: numbers.map((number) => ({ number })) },
  });
  await deliver('check_run', checkRun([7], null));
  await deliver('check_run', checkRun([], run.runId));
  await deliver('check_run', checkRun([], 'of nobody'));
  await world.idle();
  const asked = { number: 7, headSha: 'head-7', trigger: 'checkRerequest', scope: 'full', focus: null };
  const delivered = (await world.store.deliveries({ limit: 9 })).rows.map(({ deliveryId }) => deliveryId).reverse();
  t.same(
    world.runs.dispatched.slice(1),
    delivered.slice(0, 2).map((deliveryId) => ({ ...asked, deliveryId })),
  );
  t.same((await outcomes(world)).toSorted(), [
    ['failed', 'checkRunUnknown'],
    ['processed', null],
    ['processed', null],
  ]);
});

t.test('changed installations and repositories are synced, and cached installations are cleared', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  await deliver('installation', {
    action: 'unsuspend',
    installation: { id: 3, account: { login: 'octo' } },
    sender: { login: 'alice' },
  });
  await deliver('repository', { action: 'renamed', repository, sender: { login: 'alice' } });
  await world.idle();
  t.same(world.forge.synced, [repositoryKey, repositoryKey]);
  t.equal(world.forge.forgotten, 1);
  t.same(await outcomes(world), [
    ['processed', null],
    ['processed', null],
  ]);
  t.match(await world.store.syncJobs(5), [
    { trigger: 'webhook', status: 'succeeded', changedItems: 1, apiCalls: 2 },
    { trigger: 'webhook', status: 'succeeded' },
  ]);
});

const comment = (body: string, change: object = {}) => commentPayload(`@oratorio ${body}`, change);
const writes = async ({ store }: Scene) =>
  (await store.writes({ limit: 50 })).rows.map(({ kind, request }) => [kind, request['content'] ?? request['body']]);

t.test('a command is acknowledged and executed', async (t) => {
  const cases: [string, (world: Scene) => unknown, unknown, string | undefined][] = [
    [
      'review',
      ({ runs }) => runs.dispatched,
      [{ number: 7, trigger: 'mention', scope: 'incremental', focus: null }],
      undefined,
    ],
    ['full review', ({ runs }) => runs.dispatched, [{ scope: 'full' }], undefined],
    ['review for races', ({ runs }) => runs.dispatched, [{ scope: 'incremental', focus: 'races' }], undefined],
    ['pause', ({ store }) => store.itemByNumber(repositoryKey, 7), { isPaused: true }, '+1'],
    ['resume', ({ store }) => store.itemByNumber(repositoryKey, 7), { isPaused: false, automaticReviews: 0 }, '+1'],
    ['cancel', ({ runs }) => runs.cancelled, [], '+1'],
    ['resolve', ({ runs }) => runs.resolved, [], '+1'],
    ['help', () => undefined, undefined, 'Commands:'],
    ['status', () => undefined, undefined, 'has not been reviewed yet'],
  ];
  for (const [body, found, expected, answer] of cases) {
    await t.test(body, async (t) => {
      const world = await scene(t);
      const deliver = intakeOf(t, world);
      t.match(await deliver('issue_comment', comment(body)), { status: 202, body: { status: 'queued' } });
      await world.idle();
      t.match(await found(world), expected);
      const said = (await writes(world)).map(([, what]) => String(what));
      t.ok(said.includes('eyes'));
      t.equal(said.length, answer === undefined ? 1 : 2);
      if (answer !== undefined) t.ok(said.some((text) => text.includes(answer)));
      t.equal(world.forge.sent.length, said.length, 'every answer was sent');
      t.match(await world.store.command(42), { status: 'dispatched', errorCode: null });
      t.same(await outcomes(world), [['processed', null]]);
    });
  }
});

t.test('resolve in the thread of a finding resolves this one; in another thread it is refused there', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  const { item } = await world.store.upsertItem(facts(7));
  const { itemId, repositoryKey: key, headSha, baseSha } = item;
  const wish = { itemId, repositoryKey: key, number: 7, trigger: 'manual', scope: 'full', focus: null } as const;
  await world.store.enqueueRun({ ...wish, headSha, baseSha, sinceSha: null });
  const claim = await world.store.claimRun('t', 60_000, { global: 9, perRepository: 9, perSource: 9 });
  if (!claim) throw new Error('there is no run');
  const finding = (findingId: string, commentId: number | null) => ({
    ...({
      findingId,
      draftId: 'd',
      itemId,
      severity: 'major',
      kind: 'comment',
      title: 'A race',
      body: 'Two write.',
    } as const),
    ...({ path: 'a.ts', side: 'RIGHT', placement: 'inline', fingerprint: findingId, status: 'accepted' } as const),
    ...{ isResolved: false, isPublished: true, warnings: [], commentId, threadNodeId: null, url: null },
  });
  await world.store.putDraft(claim.lease, {
    ...{ draftId: 'd', runId: claim.run.runId, itemId, headSha, status: 'draft', summary: '' },
    findings: [finding('one', 40), finding('two', 41), finding('three', null)],
    ...{ reviewedFiles: 1, totalFiles: 1, skippedFiles: [], warnings: [], dropped: [], blockedBy: null },
  });
  const say = async (id: number, change: object) => {
    await deliver('pull_request_review_comment', threadPayload('@oratorio resolve.', { id, ...change }));
    await world.idle();
  };
  await say(50, { in_reply_to_id: 41 });
  t.match(world.runs.resolved, [['two', 'dismissed', 'Resolved by @alice.']]);
  t.match(
    world.forge.sent.map(({ kind, request }) => [kind, request]),
    [
      ['reaction', { commentId: 50, place: 'thread', content: 'eyes' }],
      ['reaction', { commentId: 50, place: 'thread', content: '+1' }],
    ],
  );
  await say(51, { in_reply_to_id: 99 });
  t.equal(world.runs.resolved.length, 1);
  t.match(await world.store.command(51), { status: 'rejected', errorCode: 'githubCommentCommandThreadUnknown' });
  t.match(world.forge.sent.at(-1), { kind: 'reply', request: { threadId: 99, body: /not about an open finding/ } });
  await deliver('pull_request_review', reviewPayload('@oratorio resolve', { id: 52 }));
  await world.idle();
  t.equal(world.runs.resolved.length, 4, 'all of them');
  t.match(world.forge.sent.at(-1), { kind: 'reply', request: { body: 'Done.' } });
});

t.test('a command without write permission is rejected with one reply', async (t) => {
  const world = await scene(t);
  world.forge.writers.delete('alice');
  const deliver = intakeOf(t, world);
  await deliver('issue_comment', comment('review', { author_association: 'NONE' }));
  await world.idle();
  t.same(world.runs.dispatched, []);
  t.match(await world.store.command(42), { status: 'rejected', errorCode: 'githubCommentCommandActorUnauthorized' });
  t.match(await writes(world), [['reply', /write access to this repository/]]);
  t.same(await outcomes(world), [['rejected', 'githubCommentCommandActorUnauthorized']]);

  world.forge.writers.add('alice');
  await deliver('issue_comment', comment('review', { id: 43, author_association: 'NONE' }));
  await world.idle();
  t.equal(world.runs.dispatched.length, 1, 'a writer whose membership is private may');
});

t.test('an invalid command receives the reason as reply', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  world.runs.refusal = new ReviewError('activeRunExists', 'One is under way.');
  await deliver('issue_comment', comment('review'));
  await world.idle();
  t.match(await world.store.command(42), { status: 'rejected', errorCode: 'activeRunExists' });
  t.ok((await writes(world)).some(([, text]) => String(text).includes('running already')));

  await deliver('issue_comment', comment('pause now', { id: 43 }));
  await world.idle();
  t.match(await world.store.command(43), { status: 'rejected', errorCode: 'githubCommentCommandArgumentsInvalid' });
  t.notOk((await world.store.itemByNumber(repositoryKey, 7))?.isPaused);
});

t.test('bots receive no reply, and disabled writes send none', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  await deliver('issue_comment', comment('review', { user: { login: 'helper[bot]', type: 'Bot' } }));
  await world.idle();
  t.same(await writes(world), []);

  const quietly = await scene(t, { WritesEnabled: false });
  await intakeOf(t, quietly)('issue_comment', comment('review'));
  await quietly.idle();
  t.equal(quietly.runs.dispatched.length, 1);
  t.same(await writes(quietly), []);
});

t.test('regression: a command repeated after a failed update finds its review run', async (t) => {
  const world = await scene(t);
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  const { updateCommand } = world.store;
  let attempts = 0;
  const breaksOffOnce: ReviewStore['updateCommand'] = async (...given) => {
    attempts += 1;
    // Not tried again by itself before the review is over.
    if (attempts === 1) throw unreachable(600_000);
    await updateCommand(...given);
  };
  Object.assign(world.store, { updateCommand: breaksOffOnce });
  await deliverTo(intake, { event: 'issue_comment', body: commentPayload('@oratorio review') });
  while (attempts === 0) await world.idle();
  // The review is over before the command is worked on again.
  const claim = await world.store.claimRun('one', 60_000, { global: 1, perRepository: 1, perSource: 1 });
  if (!claim) throw new Error('there is no run');
  const { runId, createdAt } = claim.run;
  await world.store.updateRun(runId, claim.lease, { state: 'done', finishedAt: createdAt });
  while (attempts < 2) {
    await pausesEnd(world);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await world.idle();
  t.match(await world.store.command(42), { status: 'dispatched', runId });
  t.equal(world.runs.dispatched.length, 1, 'the same review');
});

const synchronized = (name: string) => ({
  action: 'synchronize',
  repository: { full_name: name, html_url: `https://github.com/${name}` },
  pull_request: { number: 7 },
  number: 7,
});

t.test('regression: a delivery about one pull request reads it once and syncs no repository', async (t) => {
  const world = await scene(t);
  world.forge.pulls.set(8, facts(8));
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  t.match(await deliverTo(intake, { event: 'pull_request', body: synchronized('octo/hello') }), { status: 202 });
  await world.idle();
  t.equal(world.forge.reads, 1);
  t.same(world.forge.synced, []);
  t.same(
    (await world.store.items({ limit: 10 })).rows.map(({ number }) => number),
    [7],
  );
});

t.test('regression: a delivery about a repository without configuration sends no request to the source', async (t) => {
  const world = await scene(t);
  const intake = new WebhookIntake({ settings: () => world.settings, store: world.store, logger: quiet });
  t.teardown(() => intake.close());
  t.match(await deliverTo(intake, { event: 'pull_request', body: synchronized('octo/stranger') }), {
    status: 202,
    body: { status: 'ignored', reason: 'repositoryNotConfigured' },
  });
  await world.idle();
  t.equal(world.forge.reads, 0);
  t.same(world.forge.synced, []);
});

t.test('a review run links to the delivery that led to it', async (t) => {
  const world = await scene(t);
  const deliver = intakeOf(t, world);
  const latest = async () => (await world.store.deliveries({ limit: 1 })).rows[0]?.deliveryId ?? 'none';
  await deliver('pull_request', pullPayload('synchronize'));
  await world.idle();
  const item = await world.store.itemByNumber(repositoryKey, 7);
  t.equal(item?.deliveryId, await latest());
  await deliver('issue_comment', commentPayload('@oratorio review'));
  await world.idle();
  const { rows } = await world.store.runs({ limit: 1 });
  t.equal(rows[0]?.deliveryId, await latest());
  t.not(rows[0]?.deliveryId, item?.deliveryId);
});
