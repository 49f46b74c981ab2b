import t from 'tap';
import type { ReviewFence } from '../../../src/review/github/index.ts';
import type { NewWrite } from '../../../src/review/store/index.ts';
import { facts, forbidden, pausesEnd, repositoryKey, type Scene, scene, unreachable } from './harness.ts';

const newWrite = (name = 'one'): NewWrite => ({
  kind: 'reply',
  dedupeKey: name,
  repositoryKey,
  runId: null,
  request: { owner: 'octo', name: 'hello', number: 7, body: 'Hello', marker: '<!-- m -->' },
});
const put = ({ store }: Scene, name?: string) =>
  store.putWrite(newWrite(name), (writeId) => ({ kind: 'write', key: 'write:7', payload: { writeId } }));

t.test(
  'work whose claims get no answer stands still with a reason, and continues after the first answer',
  async (t) => {
    const { store, worker, idle } = await scene(t);
    await idle();
    t.equal(worker.problem(), undefined);
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const { claimJobs } = store;
    Object.assign(store, {
      claimJobs: async (...given: Parameters<typeof claimJobs>) => {
        asked.resolve();
        await answered.promise;
        return claimJobs(...given);
      },
    });
    await store.enqueueJob({ kind: 'write', key: 'k', payload: { writeId: 'missing' } });
    await asked.promise;
    const { now } = performance;
    t.teardown(() => Object.assign(performance, { now }));
    Object.assign(performance, { now: () => now.call(performance) + 11_000 });
    t.match(worker.problem(), /^No job was claimed for \d+ s: /);
    answered.resolve();
    while (worker.problem() !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  },
);

t.test('a sent write is settled', async (t) => {
  const world = await scene(t);
  const { writeId } = await put(world);
  await world.idle();
  t.match(world.forge.sent, [{ writeId, attempts: 0 }]);
  t.match(await world.store.write(writeId), { status: 'sent', attempts: 1, response: { url: String } });
  t.match(world.runs.settled, [{ writeId, status: 'sent' }]);
});

t.test('a write with a retryable failure is sent again, marked as an earlier attempt', async (t) => {
  const world = await scene(t);
  // Not sent again by itself before the test has looked.
  world.forge.sendFailures.push(unreachable(600_000));
  const { writeId } = await put(world);
  while (world.forge.sent.length === 0) await world.idle();
  await world.idle();
  t.match(await world.store.write(writeId), { status: 'pending', attempts: 1, lastError: { status: 502 } });
  await pausesEnd(world);
  while (world.runs.settled.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await world.idle();
  t.match(world.forge.sent[1], { attempts: 1 });
  t.match(await world.store.write(writeId), { status: 'sent', attempts: 2, lastError: null });
});

t.test('a write that took several attempts is checked for duplicates, three times', async (t) => {
  const world = await scene(t);
  world.forge.sendFailures.push(unreachable(600_000));
  const { writeId } = await put(world);
  while (world.forge.sent.length === 0) await world.idle();
  for (let pauses = 0; pauses < 4; pauses += 1) {
    await world.idle();
    await pausesEnd(world);
  }
  const { writeId: smooth } = await put(world, 'two');
  await world.idle();
  t.strictSame(world.forge.checked, [writeId, writeId, writeId]);
  t.match(await world.store.write(smooth), { status: 'sent', attempts: 1 });
  t.equal((await world.store.backlog()).jobs.size, 0);
});

t.test('the pending review of a write outlives the attempt that created it', async (t) => {
  const world = await scene(t);
  const loaded: (number | null)[] = [];
  Object.assign(world.forge, {
    send: async (_: unknown, fence: ReviewFence) => {
      loaded.push(await fence.load());
      if (loaded.length > 1) return { url: 'x' };
      await fence.save(77);
      throw unreachable(600_000);
    },
  });
  const { writeId } = await put(world);
  while (loaded.length < 1) await world.idle();
  await world.idle();
  t.match(await world.store.write(writeId), { status: 'pending', response: { reviewId: 77 } });
  await pausesEnd(world);
  while (loaded.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  await world.idle();
  t.strictSame(loaded, [null, 77]);
  t.match(await world.store.write(writeId), { status: 'sent', response: { url: 'x' } });
});

t.test('an attempt that has lost its write saves no pending review', async (t) => {
  const world = await scene(t);
  const results: unknown[] = [];
  Object.assign(world.forge, {
    send: async ({ writeId }: { writeId: string }, fence: ReviewFence) => {
      await world.store.updateWrite(writeId, { attempts: 9 });
      await fence.save(77).catch((error: unknown) => results.push(error));
      return { url: 'x' };
    },
  });
  const { writeId } = await put(world);
  while (results.length === 0) await world.idle();
  await world.idle();
  t.match(results, [{ code: 'sourceUnavailable', isRetryable: true }]);
  t.match(await world.store.write(writeId), { response: { url: 'x' } });
});

t.test('an attempt is saved before the write is sent', async (t) => {
  const world = await scene(t);
  let during: number | undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  Object.assign(world.forge, {
    send: async ({ writeId }: { writeId: string }) => {
      during = (await world.store.write(writeId))?.attempts;
      resolve();
      return {};
    },
  });
  await put(world);
  await promise;
  await world.idle();
  t.equal(during, 1);
});

t.test('a rejected write has failed and can be retried by a user', async (t) => {
  const world = await scene(t);
  world.forge.sendFailures.push(forbidden());
  const { writeId } = await put(world);
  await world.idle();
  t.match(await world.store.write(writeId), { status: 'failed', lastError: { code: 'forbidden', status: 403 } });
  t.match(world.runs.settled, [{ writeId, status: 'failed' }]);
  t.match(await world.store.deadJobs(5), [{ kind: 'write' }]);
  await world.store.enqueueJob({ kind: 'write', key: 'again', payload: { writeId, retry: true } });
  await world.idle();
  t.match(await world.store.write(writeId), { status: 'sent' });
});

t.test('no write is sent while writes are disabled', async (t) => {
  const world = await scene(t, { WritesEnabled: false });
  const { writeId } = await put(world);
  await world.idle();
  t.same(world.forge.sent, []);
  t.match(await world.store.write(writeId), { status: 'failed', lastError: { code: 'githubWritesDisabled' } });
  t.equal(world.runs.settled.length, 1);
});

t.test('a write sent before a crash is settled without sending it again', async (t) => {
  const world = await scene(t);
  const write = await world.store.putWrite(newWrite());
  await world.store.updateWrite(write.writeId, { status: 'sent', response: { url: 'x' } });
  await world.store.enqueueJob({ kind: 'write', key: 'k', payload: { writeId: write.writeId } });
  await world.idle();
  t.same(world.forge.sent, []);
  t.match(world.runs.settled, [{ status: 'sent' }]);
});

t.test(
  'a scheduled sync without changes saves no row; a failed one saves a row and is not retried before its interval',
  async (t) => {
    const world = await scene(t);
    world.forge.syncFailures.set(repositoryKey, forbidden());
    const scheduled = { trigger: 'schedule', repositoryKey };
    await world.store.enqueueJob({ kind: 'sync', key: repositoryKey, payload: scheduled });
    await world.idle();
    t.same(await world.store.syncJobs(5), []);
    t.same(await world.store.deadJobs(5), []);
    await world.store.enqueueJob({
      ...{ kind: 'sync', key: repositoryKey },
      payload: { trigger: 'manual', repositoryKey, syncJobId: 'asked' },
    });
    await world.idle();
    t.match(await world.store.syncJobs(5), [{ jobId: 'asked', status: 'failed', error: { code: 'forbidden' } }]);
  },
);

t.test('the record of a sync runs while its job is retried, and has failed when the job is given up', async (t) => {
  const world = await scene(t);
  world.forge.syncFailures.set(repositoryKey, new Error('the title has no such character'));
  await world.store.enqueueJob({
    ...{ kind: 'sync', key: repositoryKey },
    payload: { trigger: 'manual', repositoryKey, syncJobId: 'asked' },
  });
  await world.idle();
  t.match(await world.store.syncJobs(5), [{ jobId: 'asked', status: 'running' }]);
  while ((await world.store.backlog()).deadJobs === 0) {
    await pausesEnd(world);
    await world.idle();
  }
  t.match(await world.store.syncJobs(5), [{ jobId: 'asked', status: 'failed', error: { code: 'internalError' } }]);
});

t.test('the state of the reconciler is stored between runs, and replaced when it is invalid', async (t) => {
  const world = await scene(t);
  const look = async (key: string) => {
    await world.store.enqueueJob({ kind: 'reconcile', key, payload: {} });
    await world.idle();
  };
  await look('one');
  await look('two');
  await world.store.setFact('github.reconcile', 'nonsense');
  await look('three');
  const [first, second, third] = world.forge.reconciled;
  t.equal(first, 0);
  t.ok((second ?? 0) > 0);
  t.equal(third, 0);
});

t.test('clean-up deletes old rows', async (t) => {
  const world = await scene(t);
  await world.store.upsertItem(facts(7));
  await world.subject.sql(
    `insert into deliveries (deliveryId, event, outcome, receivedAt, tookMs, redeliveries) values ('old', 'push', 'ignored', 1, 1, 0)`,
  );
  await world.store.enqueueJob({ kind: 'cleanup', key: 'cleanup', payload: {} });
  await world.idle();
  t.same((await world.store.deliveries({ limit: 5 })).rows, []);
});

t.test('a job with an invalid payload becomes a dead job and does not stop other jobs', async (t) => {
  const world = await scene(t);
  await world.store.enqueueJob({ kind: 'delivery', key: 'odd', payload: { nothing: 'of use' } });
  await put(world);
  while ((await world.store.backlog()).deadJobs === 0) {
    await world.idle();
    await pausesEnd(world);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  t.match(await world.store.deadJobs(5), [{ kind: 'delivery', key: 'odd', attempt: 7 }]);
  t.equal(world.forge.sent.length, 1);
});
