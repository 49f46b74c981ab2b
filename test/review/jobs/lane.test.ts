import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { jobFailureOf, Lane, type LaneOptions, pauseAfter, retryPolicies } from '../../../src/review/jobs/index.ts';
import { type Job, ReviewStoreError } from '../../../src/review/store/index.ts';
import { program } from '../../programs.ts';
import { quiet, sqliteSubject } from '../store/databases.ts';
import { forbidden, pauseOver, unreachable } from './harness.ts';

const job = (key: string, number = 0) => ({ kind: 'delivery', key, payload: { number } }) as const;

async function laneOn(t: Test, work: LaneOptions['work'], change: Partial<LaneOptions> = {}) {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  const lane = new Lane({
    ...{ store, owner: 'one', kinds: ['delivery'], concurrency: 4, logger: quiet, work },
    giveUp: async () => {},
    ...change,
  });
  const end = store.onWake(() => lane.wake());
  // A lane that has nothing to do keeps no process alive.
  const alive = setInterval(() => {}, 1_000);
  t.teardown(async () => {
    clearInterval(alive);
    end();
    await lane.stop(0);
  });
  return { subject, store, lane };
}

t.test('a lane runs at most as many jobs as it has slots, and jobs of one key in order', async (t) => {
  let most = 0;
  let running = 0;
  const ofKeys = new Map<string, number[]>();
  const atWork = new Set<string>();
  const all = 60;
  const { promise, resolve } = Promise.withResolvers<void>();
  let done = 0;
  const { store } = await laneOn(t, async ({ key, payload }) => {
    t.notOk(atWork.has(key), 'its key is free');
    atWork.add(key);
    running += 1;
    most = Math.max(most, running);
    await new Promise((next) => setImmediate(next));
    ofKeys.set(key, [...(ofKeys.get(key) ?? []), Number(payload['number'])]);
    running -= 1;
    atWork.delete(key);
    done += 1;
    if (done === all) resolve();
  });
  for (let number = 0; number < all; number += 1) await store.enqueueJob(job(`key ${number % 6}`, number));
  await promise;
  t.ok(most <= 4, `${most} at once`);
  for (const numbers of ofKeys.values())
    t.same(
      numbers,
      numbers.toSorted((one, other) => one - other),
    );
});

t.test('a lease is renewed while its job runs', async (t) => {
  const { promise: end, resolve: finish } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let times = 0;
  const { subject, store, lane } = await laneOn(
    t,
    async () => {
      times += 1;
      begun.resolve();
      await end;
    },
    { leaseMs: 60_000, renewMs: 50 },
  );
  await store.enqueueJob(job('long'));
  await begun.promise;
  // Three times half of the lease: it would have run out.
  for (let half = 0; half < 3; half += 1) {
    await subject.sql('update jobs set "dueAt" = "dueAt" - 30000');
    const [passed] = await subject.sql('select "dueAt" from jobs');
    const isRenewed = async () =>
      Number((await subject.sql('select "dueAt" from jobs'))[0]?.['dueAt']) > Number(passed?.['dueAt']);
    while (!(await isRenewed())) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  t.same(await store.claimJobs('two', ['delivery'], 5, 1_000), [], 'nobody else gets it');
  finish();
  while (lane.running > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(times, 1);
});

t.test('losing the lease aborts the job, which changes nothing afterwards', async (t) => {
  const begun = Promise.withResolvers<void>();
  const lost = Promise.withResolvers<void>();
  const results: string[] = [];
  const { store, subject } = await laneOn(
    t,
    async (_, signal) => {
      begun.resolve();
      await new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(new Error('lost'))));
    },
    {
      renewMs: 50,
      onEnd: (_, result) => {
        results.push(result);
        lost.resolve();
      },
    },
  );
  await store.enqueueJob(job('mine'));
  await begun.promise;
  await subject.sql(`update jobs set leaseOwner = 'two', leaseToken = leaseToken + 1`);
  await lost.promise;
  t.same(results, ['lost']);
  const { jobs } = await store.backlog();
  t.equal(jobs.get('delivery')?.taken, 1, 'the other one still has it');
});

t.test('a stopping lane waits for running jobs, then returns them to the queue', async (t) => {
  const begun = Promise.withResolvers<void>();
  const { store, lane } = await laneOn(t, async (_, signal) => {
    begun.resolve();
    await new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
  });
  await store.enqueueJob(job('long'));
  await begun.promise;
  await lane.stop(10);
  t.match(await store.claimJobs('two', ['delivery'], 5, 1_000), [{ key: 'long', attempt: 2 }]);
});

t.test('a short failure of the database does not stop the lane', async (t) => {
  const done = Promise.withResolvers<void>();
  const { store, lane } = await laneOn(t, async () => done.resolve());
  const { claimJobs } = store;
  let failures = 0;
  Object.assign(store, {
    claimJobs: async (...given: Parameters<typeof claimJobs>) => {
      failures += 1;
      if (failures < 4) throw new Error('database is locked');
      return claimJobs(...given);
    },
  });
  await store.enqueueJob(job('one'));
  const waking = setInterval(() => lane.wake(), 10);
  await done.promise;
  clearInterval(waking);
  t.ok(failures >= 4);
});

t.test('a job whose giveUp fails is retried instead of becoming a dead job', async (t) => {
  let tries = 0;
  const buried = Promise.withResolvers<void>();
  const { store, subject } = await laneOn(
    t,
    async () => {
      throw forbidden();
    },
    {
      leaseMs: 50,
      renewMs: 10_000,
      giveUp: async () => {
        tries += 1;
        if (tries === 1) throw new Error('nobody could be told');
        buried.resolve();
      },
    },
  );
  await store.enqueueJob(job('one'));
  await buried.promise;
  while ((await store.deadJobs(5)).length === 0) await pauseOver(subject);
  t.equal((await store.deadJobs(5)).length, 1);
});

t.test('a job that every process left is given up after its last attempt, without work', async (t) => {
  const subject = sqliteSubject(t);
  const before = await subject.open();
  const attempts = retryPolicies.delivery.pausesMs.length + 1;
  for (const key of ['one', 'later']) await before.enqueueJob(job(key));
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    t.match(await before.claimJobs('killed', ['delivery'], 1, 0), [{ key: 'one', attempt }]);
    await subject.sql(`update jobs set "dueAt" = 1 where "key" = 'one'`);
  }
  const given: string[] = [];
  const worked = Promise.withResolvers<string>();
  const lane = new Lane({
    ...{ store: before, owner: 'heir', kinds: ['delivery'], concurrency: 4, logger: quiet },
    work: async ({ key }) => worked.resolve(key),
    giveUp: async ({ key }, { code }) => void given.push(`${key} ${code}`),
  });
  t.teardown(() => lane.stop(0));
  lane.wake();
  t.equal(await worked.promise, 'later', 'a job with attempts left is executed');
  await lane.stop(1_000);
  t.strictSame(given, ['one attemptsExhausted']);
  t.match(await before.deadJobs(5), [{ key: 'one', attempt: attempts + 1 }]);
});

t.test('a job that fails in an outage of the database waits and uses up no attempt', async (t) => {
  let failures = 0;
  const done = Promise.withResolvers<number>();
  const { store, subject, lane } = await laneOn(t, async ({ attempt }) => {
    failures += 1;
    if (failures <= 20) throw new ReviewStoreError('databaseUnavailable', 'password authentication failed');
    done.resolve(attempt);
  });
  await store.enqueueJob(job('one'));
  const passing = setInterval(() => void pauseOver(subject).then(() => lane.wake()), 20);
  t.teardown(() => clearInterval(passing));
  t.equal(await done.promise, 1);
  t.strictSame(await store.deadJobs(5), []);
});

t.test('pauses follow the table, lengthened only by jitter and Retry-After, until the job is dead', (t) => {
  const kinds = Object.keys(retryPolicies) as Job['kind'][];
  fc.assert(
    fc.property(
      fc.constantFrom(...kinds),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 0, max: 7_200_000 }),
      (kind, attempt, retryAfterMs) => {
        const pause = pauseAfter({ kind, attempt }, jobFailureOf(unreachable(retryAfterMs)));
        const base = retryPolicies[kind].pausesMs[attempt - 1];
        if (base === undefined) return pause === 'dead';
        return (
          pause !== 'dead' && pause >= Math.max(base, retryAfterMs) && pause <= Math.max(base * 1.2 + 1, retryAfterMs)
        );
      },
    ),
    { numRuns: 300 },
  );
  t.equal(pauseAfter({ kind: 'delivery', attempt: 1 }, jobFailureOf(forbidden())), 'dead');
  t.match(jobFailureOf(new Error('odd')), { code: 'internalError', isRetryable: true, isBug: true });
  t.end();
});

/** A worker in a process of its own, and its output. */
function worker(t: Test, directory: string, name: string, hangs = false) {
  const script = program('test/review/jobs/lane-worker.ts');
  const args = ['--disable-warning=ExperimentalWarning', script, directory, name, ...(hangs ? ['hangs'] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const said: string[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    said.push(line);
    for (const each of waiting) each();
  });
  const over = new Promise<void>((resolve) => child.once('close', () => resolve()));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await over;
  });
  return {
    said,
    kill: async () => {
      child.kill('SIGKILL');
      await over;
    },
    until: (isEnough: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (!isEnough()) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}

t.test('the next worker repeats the jobs of a killed one; every job is done, in order per key', async (t) => {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  const all = 60;
  for (let number = 0; number < all; number += 1) await store.enqueueJob(job(`key ${number % 8}`, number));
  if (!('directory' in subject.where)) throw new Error('This test runs on SQLite');
  const first = worker(t, subject.where.directory, 'first', true);
  const doneOf = (said: readonly string[]) => said.filter((line) => line.startsWith('done'));
  await first.until(() => first.said.some((line) => /begin .* (\d*[49])$/.test(line)) && doneOf(first.said).length > 3);
  await first.kill();
  const second = worker(t, subject.where.directory, 'second');
  const numbers = () => new Set([...doneOf(first.said), ...doneOf(second.said)].map((line) => line.split(' ').at(-1)));
  await second.until(() => numbers().size === all);
  await second.kill();
  const lines = [...doneOf(first.said), ...doneOf(second.said)];
  for (let key = 0; key < 8; key += 1) {
    const order = lines
      .filter((line) => line.startsWith(`done key ${key} `))
      .map((line) => Number(line.split(' ').at(-1)));
    const firstTimes = [...new Set(order)];
    t.same(
      firstTimes,
      firstTimes.toSorted((one, other) => one - other),
      `key ${key}`,
    );
  }
});
