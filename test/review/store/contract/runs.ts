import t, { type Test } from 'tap';
import { LeaseLostError, type ReviewStore } from '../../../../src/review/store/index.ts';
import { claimed, facts, many, onBoth, wanted, wishFor, withItem } from '../databases.ts';

/** Changes nothing, and says so. */
async function isFenced(t: Test, store: ReviewStore, { run, lease }: Awaited<ReturnType<typeof claimed>>) {
  const before = await store.run(run.runId);
  await t.rejects(store.renewRun(run.runId, lease, 1_000), LeaseLostError, 'it cannot renew');
  await t.rejects(store.updateRun(run.runId, lease, { state: 'done', threadId: 'late' }), LeaseLostError, 'nor write');
  await t.rejects(store.releaseRun(run.runId, lease, null), LeaseLostError, 'nor give back');
  await t.rejects(store.putDraft(lease, draftOf(run.runId, run.itemId)), LeaseLostError, 'nor hand in a draft');
  t.strictSame(await store.run(run.runId), before);
  t.equal(await store.draftOfRun(run.runId), undefined);
}

const draftOf = (runId: string, itemId: string) => ({
  draftId: `draft of ${runId}`,
  runId,
  itemId,
  headSha: 'head',
  status: 'draft' as const,
  summary: '',
  findings: [],
  reviewedFiles: 0,
  totalFiles: 0,
  skippedFiles: [],
  warnings: [],
  dropped: [],
  blockedBy: null,
});

onBoth(t, 'a run goes from the queue to its end', async (t, subject) => {
  const { store, item } = await withItem(subject);
  const { run, isNew } = await store.enqueueRun(wishFor(item, { focus: 'locks', scope: 'incremental', sinceSha: 's' }));
  t.match(run, { state: 'queued', attempt: 1, focus: 'locks', sinceSha: 's', startedAt: null, createdAt: Number });
  t.equal(isNew, true);
  const { run: mine, lease } = await claimed(store);
  t.strictSame(mine, { ...run, startedAt: mine.startedAt });
  t.match(lease, { owner: 'one', token: 1 });
  t.equal(await store.claimRun('two', 1_000, many), undefined, 'nobody else gets it');
  const renewed = await store.renewRun(run.runId, lease, 120_000);
  t.ok(renewed.lease.until > lease.until);
  t.match(renewed, { isCancelRequested: false, lease: { token: 1 } });
  const reviewing = await store.updateRun(run.runId, lease, { state: 'reviewing', threadId: 'th', worktreePath: '/w' });
  t.match(reviewing, { state: 'reviewing', threadId: 'th', worktreePath: '/w', finishedAt: null });
  const done = await store.updateRun(run.runId, lease, { state: 'done', error: { code: 'x', message: 'y' } });
  t.match(done, { state: 'done', finishedAt: Number, error: { code: 'x', message: 'y' } });
  await isFenced(t, store, { run, lease });
  t.equal(await store.claimRun('one', 1_000, many), undefined);
  t.equal(await store.run('none'), undefined);
});

onBoth(t, 'an item has one active and one waiting run; a newer head replaces the waiting one', async (t, subject) => {
  const { store, item } = await withItem(subject);
  const first = await store.enqueueRun(wishFor(item));
  t.strictSame(
    await store.enqueueRun(wishFor(item)),
    { run: first.run, isNew: false },
    'the same head is the same run',
  );
  const second = await store.enqueueRun(wishFor(item, { headSha: 'b' }));
  t.match(await store.run(first.run.runId), { state: 'superseded', finishedAt: Number });
  const { run, lease } = await claimed(store);
  t.equal(run.runId, second.run.runId);
  t.match(await store.enqueueRun(wishFor(item, { headSha: 'b' })), { isNew: false, run: { runId: run.runId } });

  const third = await store.enqueueRun(wishFor(item, { headSha: 'c' }));
  t.equal(await store.claimRun('two', 1_000, many), undefined, 'it waits for the active one');
  t.strictSame((await store.itemActivity([item.itemId])).get(item.itemId), {
    openFindings: 0,
    activeRunId: run.runId,
    waitingRunId: third.run.runId,
  });
  const fourth = await store.enqueueRun(wishFor(item, { headSha: 'd', focus: 'tests' }));
  t.equal((await store.enqueueRun(wishFor(item, { headSha: 'd' }))).isNew, true, 'another focus is another run');
  t.match(await store.run(fourth.run.runId), { state: 'superseded' });
  await store.updateRun(run.runId, lease, { state: 'done' });
  t.match(await claimed(store), { run: { headSha: 'd', focus: null } });
  await t.rejects(store.enqueueRun(wishFor({ ...item, itemId: 'none' })), { code: 'notFound' });
});

onBoth(t, 'a head dispatched automatically is not dispatched again', async (t, subject) => {
  const { store, item } = await withItem(subject);
  const wish = wishFor(item, { trigger: 'auto' });
  const { run, isNew } = await store.enqueueRun(wish);
  t.equal(isNew, true);
  const { lease } = await claimed(store);
  const full = await store.enqueueRun({ ...wish, trigger: 'manual', scope: 'incremental' });
  t.match(full, { isNew: false }, 'a full review covers an incremental one');
  await store.updateRun(run.runId, lease, { state: 'failed' });
  t.match(await store.enqueueRun(wish), { isNew: false, run: { runId: run.runId, state: 'failed' } });
  const again = await store.enqueueRun({ ...wish, trigger: 'mention', scope: 'incremental' });
  t.match(again, { isNew: true }, 'by a person it is');
  t.match(
    await store.enqueueRun({ ...wish, trigger: 'manual' }),
    { isNew: true, run: { scope: 'full' } },
    'full is more',
  );
});

onBoth(t, 'an expired run lease can be claimed, and its late owner changes nothing', async (t, subject) => {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  const late = await claimed(store);
  await store.updateRun(late.run.runId, late.lease, { state: 'reviewing' });
  await subject.sql(`UPDATE "runs" SET "leaseUntil" = 1`);
  t.ok((await store.renewRun(late.run.runId, late.lease, 1)).lease, 'while nobody has it, it may still be renewed');
  await subject.sql(`UPDATE "runs" SET "leaseUntil" = 1`);
  const other = await subject.open('two');
  const taken = await claimed(other, 'two');
  t.match(taken, { run: { runId: late.run.runId, state: 'reviewing', attempt: 2 }, lease: { owner: 'two', token: 2 } });
  await isFenced(t, store, late);
  t.ok(await other.updateRun(taken.run.runId, taken.lease, { state: 'done' }));
});

onBoth(t, 'a released run resumes at its state', async (t, subject) => {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  const first = await claimed(store);
  await store.updateRun(first.run.runId, first.lease, { state: 'publishing' });
  await store.releaseRun(first.run.runId, first.lease, (await store.now()) + 60_000);
  t.equal(await store.claimRun('one', 1_000, many), undefined, 'not before its time');
  await isFenced(t, store, first);
  await subject.sql(`UPDATE "runs" SET "nextAttemptAt" = 1`);
  const second = await claimed(store);
  t.match(second, { run: { state: 'publishing', attempt: 1, nextAttemptAt: null }, lease: { token: 2 } });
  await isFenced(t, store, first);
  await store.enqueueRun(wishFor(item, { headSha: 'newer' }));
  await store.releaseRun(second.run.runId, second.lease, null);
  const third = await claimed(store);
  t.equal(third.run.runId, second.run.runId, 'what is being told is told to its end');
  await store.updateRun(third.run.runId, third.lease, { state: 'reviewing' });
  await store.releaseRun(third.run.runId, third.lease, null);
  t.match(await store.run(third.run.runId), { state: 'superseded' }, 'anything else gives way to what waits');
  t.match(await claimed(store), { run: { headSha: 'newer' } });
});

onBoth(t, 'a run can be cancelled', async (t, subject) => {
  const { store, item } = await withItem(subject);
  const waiting = await store.enqueueRun(wishFor(item));
  t.match(await store.requestCancel(waiting.run.runId), { state: 'cancelled', finishedAt: Number });
  t.equal(await store.claimRun('one', 1_000, many), undefined);
  const active = await store.enqueueRun(wishFor(item));
  t.equal(active.isNew, true);
  const { run, lease } = await claimed(store);
  t.match(await store.requestCancel(run.runId), { state: 'queued', isCancelRequested: true });
  t.match(await store.renewRun(run.runId, lease, 1_000), { isCancelRequested: true }, 'its holder hears of it');
  t.match(await store.enqueueRun(wishFor(item)), { isNew: true }, 'what is being cancelled is not what is wished for');
  await store.updateRun(run.runId, lease, { state: 'cancelled' });
  t.match(await store.requestCancel(run.runId), { state: 'cancelled' });
  t.equal(await store.requestCancel('none'), undefined);
});

onBoth(t, 'a run that backs off is cancelled at once; a publishing run is not', async (t, subject) => {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  const first = await claimed(store);
  await store.updateRun(first.run.runId, first.lease, { state: 'backingOff', attempt: 2 });
  await store.releaseRun(first.run.runId, first.lease, (await store.now()) + 60_000);
  const ended = { state: 'cancelled', isCancelRequested: true, nextAttemptAt: null, finishedAt: Number };
  t.match(await store.requestCancel(first.run.runId), ended);
  await isFenced(t, store, first);
  await store.enqueueRun(wishFor(item));
  const second = await claimed(store);
  t.not(second.run.runId, first.run.runId, 'it is not in the way of the next');
  await store.updateRun(second.run.runId, second.lease, { state: 'publishing' });
  await store.releaseRun(second.run.runId, second.lease, null);
  t.match(await store.requestCancel(second.run.runId), { state: 'publishing', isCancelRequested: true });
  t.match(await claimed(store), { run: { runId: second.run.runId, state: 'publishing' } });
});

onBoth(t, 'claims never exceed the limits', async (t, subject) => {
  const store = await subject.open();
  const enterprise = { ...wanted('e'), repositoryKey: 'github:ghe.example/octo/e', instance: 'ghe.example' };
  await store.syncRepositories([wanted('a'), wanted('b'), enterprise]);
  for (const key of ['github:github.com/octo/a', 'github:github.com/octo/b', enterprise.repositoryKey]) {
    for (let number = 1; number <= 3; number += 1) {
      const { item } = await store.upsertItem(facts(number, { repositoryKey: key }));
      await store.enqueueRun(wishFor(item));
    }
  }
  const limits = { global: 4, perRepository: 2, perSource: 3 };
  const taken = [];
  for (let claim = await store.claimRun('one', 60_000, limits); claim; ) {
    taken.push(claim);
    claim = await store.claimRun('one', 60_000, limits);
  }
  t.strictSame(
    taken.map(({ run }) => `${run.repositoryKey.split('/').at(-1)}${run.number}`),
    ['a1', 'a2', 'b1', 'e1'],
  );
  const [first] = taken;
  if (first) await store.updateRun(first.run.runId, first.lease, { state: 'done' });
  t.match(await store.claimRun('one', 60_000, limits), { run: { number: 3 } }, 'an end makes room');
  t.equal(await store.claimRun('one', 60_000, { ...limits, global: 0 }), undefined);
});

onBoth(t, 'a worker prefers runs of its repositories until another run has waited long enough', async (t, subject) => {
  const store = await subject.open();
  await store.syncRepositories([wanted('a'), wanted('b')]);
  for (const name of ['a', 'b']) {
    const { item } = await store.upsertItem(facts(1, { repositoryKey: wanted(name).repositoryKey }));
    await store.enqueueRun(wishFor(item));
  }
  const near = [wanted('b').repositoryKey];
  const first = await store.claimRun('one', 60_000, many, near);
  t.match(first, { run: { repositoryKey: near[0] } });
  if (first) await store.releaseRun(first.run.runId, first.lease, null);
  await subject.sql(`UPDATE "runs" SET "createdAt" = "createdAt" - 31000`);
  t.match(await store.claimRun('one', 60_000, many, near), { run: { repositoryKey: wanted('a').repositoryKey } });
});

onBoth(t, 'runs are listed newest first', async (t, subject) => {
  const { store, item } = await withItem(subject);
  for (const headSha of ['a', 'b', 'c']) await store.enqueueRun(wishFor(item, { headSha }));
  const first = await store.runs({ itemId: item.itemId, limit: 2 });
  t.strictSame(
    first.rows.map(({ headSha }) => headSha),
    ['c', 'b'],
  );
  const rest = await store.runs({ itemId: item.itemId, limit: 2, cursor: first.next ?? '' });
  t.match(rest, { rows: [{ headSha: 'a' }], next: undefined });
  t.equal((await store.runs({ state: 'superseded', limit: 10 })).rows.length, 2);
  await t.rejects(store.runs({ limit: 1, cursor: 'nonsense' }), { code: 'invalidCursor' });
  t.equal((await store.runs({ limit: 5, itemId: 'none' })).rows.length, 0);
});
