import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { openReviewStore, type ReviewStore, ReviewStoreError } from '../../../src/review/store/index.ts';
import { migrate, migrations } from '../../../src/review/store/migrations.ts';
import { openPostgres } from '../../../src/review/store/postgres/open.ts';
import { postgres, postgresSubject, quiet, type Subject, stopPostgres } from './databases.ts';

t.teardown(stopPostgres);

const hour = 3_600_000;

/** Waits until `look` finds something. */
async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; ) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(20);
  }
  throw new Error('not within a minute');
}

/** Every hint, in order. Those of the clock come as three: runs, jobs, events. */
function hintsOf(t: Test, store: ReviewStore): { readonly single: (what: string) => Promise<void> } {
  const all: string[] = [];
  t.teardown(store.onWake((what) => all.push(what)));
  return {
    single: async (what) => {
      await until(async () => (all.some((each, n) => each === what && all[n - 1] !== before[what]) ? true : undefined));
      all.length = 0;
    },
  };
}
const before: Readonly<Record<string, string>> = { jobs: 'runs', events: 'jobs', runs: '' };

/** `idle`: the command is over, from now on they hear. */
const listeners = ({ sql }: Subject) =>
  sql(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle'`,
  );

t.test('a hint reaches other replicas, also after the listening connection was lost', async (t) => {
  const subject = await postgresSubject(t);
  const one = await subject.open('one');
  const two = await subject.open('two');
  const hints = hintsOf(t, two);
  const enqueue = () => one.enqueueJob({ kind: 'sync', key: 'k', payload: {}, dedupe: 'one is enough' });
  await enqueue();
  await hints.single('jobs');
  const lost = (await listeners(subject)).map(({ pid }) => Number(pid));
  t.equal(lost.length, 2);
  for (const pid of lost) await subject.sql(`SELECT pg_terminate_backend(${pid})`);
  await until(async () => {
    const now = (await listeners(subject)).map(({ pid }) => Number(pid));
    return now.length === 2 && now.every((pid) => !lost.includes(pid)) ? true : undefined;
  });
  await enqueue();
  await hints.single('jobs');
  await one.publish('run.changed', {});
  await hints.single('events');
  t.pass('both were heard');
});

t.test('replicas wake on a timer without hints', async (t) => {
  const subject = await postgresSubject(t);
  const store = await subject.open();
  const heard = new Set<string>();
  await new Promise<void>((resolve) => {
    store.onWake((what) => {
      heard.add(what);
      if (heard.size === 3) resolve();
    });
  });
  t.strictSame([...heard].sort(), ['events', 'jobs', 'runs']);
});

t.test('a reader of events misses none with concurrent writers', async (t) => {
  const subject = await postgresSubject(t);
  const stores = await Promise.all(['one', 'two', 'three'].map((owner) => subject.open(owner)));
  const [reader] = stores;
  if (!reader) return;
  const perWriter = 30;
  const writers = stores.flatMap((store) => [store, store, store]);
  let isOver = false;
  const seen: number[] = [];
  const read = async () => {
    for (let after = 0; ; ) {
      const mayEnd = isOver;
      const events = await reader.events(after, 1_000);
      seen.push(...events.map(({ seq }) => seq));
      after = seen.at(-1) ?? 0;
      if (mayEnd && events.length === 0) return;
    }
  };
  const write = async (store: ReviewStore) => {
    for (let n = 0; n < perWriter; n += 1) await store.publish('run.changed', { n });
  };
  const reading = read();
  await Promise.all(writers.map(write));
  isOver = true;
  await reading;
  t.equal(seen.length, writers.length * perWriter);
  t.equal(new Set(seen).size, seen.length);
});

t.test('an uncommitted event delays later events', async (t) => {
  const subject = await postgresSubject(t);
  const store = await subject.open();
  if (!('connectionString' in subject.where)) return;
  const slow = new pg.Client(subject.where.connectionString);
  await slow.connect();
  t.teardown(() => slow.end());
  await slow.query('BEGIN');
  await slow.query(`SELECT pg_advisory_xact_lock(hashtextextended('oratorio events', 0))`);
  await slow.query(`INSERT INTO "events" ("at", "kind", "data") VALUES (1, 'slow', '{}')`);
  const fast = store.publish('run.changed', {});
  await until(async () => {
    const waiting = await subject.sql(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`);
    return waiting.length > 0 ? true : undefined;
  });
  t.strictSame(await store.events(0, 9), []);
  await slow.query('COMMIT');
  await fast;
  t.match(await store.events(0, 9), [{ kind: 'slow' }, { kind: 'run.changed' }]);
});

t.test('jobs of one key run in order while several replicas add and claim them', async (t) => {
  const subject = await postgresSubject(t);
  const stores = await Promise.all(['one', 'two', 'three'].map((owner) => subject.open(owner)));
  const perWriter = 20;
  const keys = ['a', 'b'];
  let writing = stores.length * 2;
  const add = async (store: ReviewStore) => {
    for (let n = 0; n < perWriter; n += 1)
      await Promise.all(keys.map((key) => store.enqueueJob({ kind: 'delivery', key, payload: {} })));
    writing -= 1;
  };
  const running = new Set<string>();
  const newest = new Map<string, number>();
  const faults: string[] = [];
  let done = 0;
  const take = async (store: ReviewStore, owner: string) => {
    while (writing > 0 || done < perWriter * keys.length * stores.length * 2) {
      for (const job of await store.claimJobs(owner, ['delivery'], 5, hour)) {
        if (running.has(job.key)) faults.push(`two of ${job.key}`);
        if (job.jobId < (newest.get(job.key) ?? 0)) faults.push(`${job.jobId} of ${job.key} is late`);
        running.add(job.key);
        newest.set(job.key, job.jobId);
        await pause(1);
        running.delete(job.key);
        if (await store.completeJob(job)) done += 1;
      }
    }
  };
  await Promise.all([
    ...stores.flatMap((store) => [add(store), add(store)]),
    ...stores.map((store, n) => take(store, `taker ${n}`)),
  ]);
  t.strictSame(faults, []);
});

t.test('a restart of PostgreSQL during work loses nothing, and work continues', { timeout: 120_000 }, async (t) => {
  const server = await postgres();
  const subject = await postgresSubject(t);
  const store = await subject.open();
  /** Retries after retryable errors, as callers do. */
  const patiently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ReviewStoreError && error.isRetryable)) throw error;
        await pause(20);
      }
    }
  };
  const accepted: string[] = [];
  let isOver = false;
  const deliver = async (name: string) => {
    for (let n = 0; !isOver; n += 1) {
      const deliveryId = `${name} ${n}`;
      const job = { kind: 'delivery', key: deliveryId, payload: {} } as const;
      const rest = { action: null, repositoryKey: null, number: null, sender: null, reason: null, command: null };
      await patiently(() =>
        store.takeDelivery({ ...rest, deliveryId, event: 'push', outcome: 'queued', tookMs: 1, job }),
      );
      accepted.push(deliveryId);
    }
  };
  const delivering = ['a', 'b', 'c', 'd'].map(deliver);
  for (const how of ['immediate', 'fast'] as const) {
    const enough = accepted.length + 40;
    await until(async () => (accepted.length >= enough ? true : undefined));
    await server.restart(how);
  }
  const enough = accepted.length + 40;
  await until(async () => (accepted.length >= enough ? true : undefined));
  isOver = true;
  await Promise.all(delivering);

  const rows = await subject.sql('SELECT "deliveryId" FROM "deliveries"');
  const kept = new Set(rows.map(({ deliveryId }) => deliveryId));
  t.strictSame(
    accepted.filter((id) => !kept.has(id)),
    [],
  );
  const jobs = await patiently(() => store.claimJobs('one', ['delivery'], 1_000, hour));
  t.equal(jobs.length, Math.min(kept.size, 1_000));
  t.equal(new Set(jobs.map(({ key }) => key)).size, jobs.length, 'each has one job');
  const hints = hintsOf(t, store);
  await until(async () => ((await listeners(subject)).length === 1 ? true : undefined));
  const other = await subject.open('two');
  await other.enqueueJob({ kind: 'sync', key: 'k', payload: {} });
  await hints.single('jobs');
});

t.test('an unreachable server is a retryable error', async (t) => {
  const server = await postgres();
  const subject = await postgresSubject(t);
  const store = await subject.open();
  await server.halt('fast');
  await t.rejects(store.newestEvent(), { name: 'ReviewStoreError', code: 'databaseUnavailable', isRetryable: true });
  await t.rejects(store.publish('run.changed', {}), { code: 'databaseUnavailable' });
  await t.rejects(store.setFact('a', 'b'), { code: 'databaseUnavailable' });
  await t.rejects(subject.open('two'), { code: 'databaseUnavailable' });
  await server.start();
  await store.publish('run.changed', {});
  t.equal(await store.newestEvent(), 1);
});

t.test('replicas starting at once create the tables once; a newer schema is rejected', async (t) => {
  const subject = await postgresSubject(t, { isNew: true, changesTables: true });
  const stores = await Promise.all(['a', 'b', 'c', 'd'].map((owner) => subject.open(owner)));
  await Promise.all(stores.map((store) => store.publish('run.changed', {})));
  t.equal((await stores[0]?.events(0, 9))?.length, 4);
  if (!('connectionString' in subject.where)) return;
  const { connectionString } = subject.where;
  const { database, wakes } = await openPostgres({ connectionString, owner: 'new', logger: quiet });
  t.teardown(async () => {
    wakes.close();
    await database.close();
  });
  const steps = [...migrations, () => ['ALTER TABLE "facts" ADD COLUMN "more" text']];
  const upgrade = () =>
    database.write(async (rows) => {
      await database.lock(rows, 'migrations');
      await migrate(rows, 'postgres', 'it', steps);
    });
  await Promise.all([upgrade(), upgrade()]);
  await subject.sql(`INSERT INTO "facts" ("name", "value", "more") VALUES ('a', 'b', 'c')`);
  await t.rejects(subject.open('old'), { code: 'databaseNewer', isRetryable: false });
  t.equal(await stores[0]?.fact('a'), 'b', 'who runs already goes on');
});

t.test('errors never contain the connection string', async (t) => {
  const open = (connectionString: string) => openReviewStore({ connectionString, owner: 'one', logger: quiet });
  for (const text of ['postgres://user:hunter2@[bad', 'postgres://user:hunter2@127.0.0.1:1/x']) {
    const error: unknown = await open(text).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    t.match(error, { name: 'ReviewStoreError' });
    const cause = error instanceof Error ? error.cause : undefined;
    t.notMatch(`${JSON.stringify(error)} ${error} ${JSON.stringify(cause)} ${cause}`, /hunter2/);
  }
});

t.test('a statement that exceeds the time limit is cancelled', async (t) => {
  const subject = await postgresSubject(t);
  if (!('connectionString' in subject.where)) return;
  const { connectionString } = subject.where;
  await subject.open();
  const store = await openReviewStore({
    // Long enough for every other statement, also on a busy machine.
    connectionString: `${connectionString}?statement_timeout=5000`,
    owner: 'hasty',
    logger: quiet,
  });
  t.teardown(() => store.close());
  const holder = new pg.Client(connectionString);
  await holder.connect();
  t.teardown(() => holder.end());
  await holder.query('BEGIN; LOCK TABLE "facts"');
  await t.rejects(store.setFact('a', 'b'), { code: 'databaseBusy', isRetryable: true });
  await holder.query('ROLLBACK');
  await store.setFact('a', 'b');
  t.equal(await store.fact('a'), 'b');
});
