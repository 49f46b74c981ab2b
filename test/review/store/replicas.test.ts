import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Job, ReviewStore } from '../../../src/review/store/index.ts';
import { program } from '../../programs.ts';
import { facts, many, onBoth, type Subject, stopPostgres, wanted, wishFor, withItem } from './databases.ts';
import type { WorkerOrder } from './store-worker.ts';

t.teardown(stopPostgres);

const hour = 3_600_000;
const worker = program('test/review/store/store-worker.ts');

function startWorker(t: Test, { where }: Subject, rest: Omit<WorkerOrder, 'where'>): ChildProcess {
  const order: WorkerOrder = { where, ...rest };
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', worker, JSON.stringify(order)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

/** Everything that a worker says until it is gone; it is killed after `lines` of them. */
async function heard(child: ChildProcess, lines = Number.POSITIVE_INFINITY): Promise<string[]> {
  const all: string[] = [];
  if (!child.stdout) return all;
  const closed = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (line) => {
    all.push(line);
    if (all.length === lines) child.kill('SIGKILL');
  });
  await closed;
  return all;
}

/** A statement that a killed process has sent may still be carried out: waits until the server knows that it is gone. */
async function areGone({ kind, sql }: Subject, workers: readonly string[]): Promise<void> {
  if (kind === 'sqlite') return;
  const names = workers.map((owner) => `'oratorio ${owner}'`).join(', ');
  const left = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name IN (${names})`;
  while ((await sql(left)).length > 0) await pause(20);
}

/** Jobs of one key are added one after the other: of two at once either may be the first. */
async function fill(store: ReviewStore, count: number, keys: number): Promise<void> {
  const atOnce = Math.min(100, keys);
  for (let from = 0; from < count; from += atOnce) {
    const numbers = Array.from({ length: Math.min(atOnce, count - from) }, (_, index) => from + index);
    await Promise.all(
      numbers.map((number) =>
        store.enqueueJob({ kind: 'delivery', key: `key ${number % keys}`, payload: { number }, dedupe: `${number}` }),
      ),
    );
  }
}

onBoth(t, 'racing replicas run every job once, and jobs of one key in order', async (t, subject) => {
  const replicas = [await subject.open('one'), await subject.open('two')];
  const [first] = replicas;
  if (!first) return;
  const count = 250;
  await fill(first, count, 40);
  const running = new Set<string>();
  const done = new Map<string, number[]>();
  const faults: string[] = [];
  const finish = async (store: ReviewStore, job: Job) => {
    if (running.has(job.key)) faults.push(`two of ${job.key}`);
    running.add(job.key);
    await turn();
    const number = Number(job.payload['number']);
    done.set(job.key, [...(done.get(job.key) ?? []), number]);
    running.delete(job.key);
    if (!(await store.completeJob(job))) faults.push(`the lease of ${number} was lost`);
  };
  const left = async () => Number((await subject.sql('SELECT count(*) AS "count" FROM "jobs"'))[0]?.['count']);
  const work = async (store: ReviewStore, owner: string) => {
    for (;;) {
      const jobs = await store.claimJobs(owner, ['delivery'], 25, hour);
      if (jobs.length === 0 && (await left()) === 0) return;
      await Promise.all(jobs.map((job) => finish(store, job)));
    }
  };
  await Promise.all([0, 1, 2, 3].map((n) => work(replicas[n % 2] ?? first, `worker ${n}`)));
  t.strictSame(faults, []);
  t.equal([...done.values()].flat().length, count);
  t.ok([...done.values()].every((numbers) => numbers.every((each, n) => n === 0 || each > (numbers[n - 1] ?? 0))));
});

onBoth(t, 'concurrent claims of several replicas never exceed the limits', async (t, subject) => {
  const replicas = await Promise.all(['one', 'two', 'three'].map((owner) => subject.open(owner)));
  const [first] = replicas;
  if (!first) return;
  const names = ['a', 'b', 'c', 'd'];
  await first.syncRepositories(names.map((name) => wanted(name)));
  for (const name of names) {
    for (let number = 1; number <= 3; number += 1) {
      const { item } = await first.upsertItem(facts(number, { repositoryKey: wanted(name).repositoryKey }));
      await first.enqueueRun(wishFor(item));
    }
  }
  const limits = { global: 5, perRepository: 2, perSource: 5 };
  const claims = await Promise.all(
    Array.from({ length: 30 }, (_, n) => replicas[n % 3]?.claimRun(`worker ${n}`, hour, limits)),
  );
  const taken = claims.filter((each) => each !== undefined).map(({ run }) => run);
  t.equal(taken.length, 5);
  t.equal(new Set(taken.map(({ runId }) => runId)).size, 5);
  const perRepository = Map.groupBy(taken, ({ repositoryKey }) => repositoryKey);
  t.ok([...perRepository.values()].every((runs) => runs.length <= 2));
});

onBoth(t, 'requests of several replicas for one item start one run', async (t, subject) => {
  const replicas = [await subject.open('one'), await subject.open('two')];
  await replicas[0]?.syncRepositories([wanted()]);
  const found = await replicas[0]?.upsertItem(facts(1));
  if (!found) return;
  const wish = wishFor(found.item, { trigger: 'auto' });
  const wishes = await Promise.all(Array.from({ length: 20 }, (_, n) => replicas[n % 2]?.enqueueRun(wish)));
  t.equal(wishes.filter((each) => each?.isNew).length, 1);
  t.equal(new Set(wishes.map((each) => each?.run.runId)).size, 1);
  const claims = await Promise.all(Array.from({ length: 10 }, (_, n) => replicas[n % 2]?.claimRun('x', hour, many)));
  t.equal(claims.filter(Boolean).length, 1);
});

onBoth(
  t,
  'processes starting at once create the tables once, and kill -9 loses nothing that was accepted',
  async (t, subject) => {
    const children = ['first', 'second'].map((owner) => startWorker(t, subject, { owner, mode: 'intake' }));
    const said = await Promise.all(children.map((child) => heard(child, 20 + Math.floor(Math.random() * 200))));
    for (const child of children) t.equal(child.signalCode, 'SIGKILL', 'it did not end by itself');
    await areGone(subject, ['first', 'second']);
    t.equal((await subject.sql('SELECT * FROM "schemaVersion"')).length, 1);
    const accepted = said.flat();
    const kept = new Set((await subject.sql('SELECT "deliveryId" FROM "deliveries"')).map((row) => row['deliveryId']));
    const jobs = new Set((await subject.sql('SELECT "key" FROM "jobs"')).map((row) => row['key']));
    t.strictSame(
      accepted.filter((id) => !kept.has(id) || !jobs.has(id)),
      [],
    );
    t.equal(jobs.size, kept.size, 'neither without the other');
    t.ok(kept.size - accepted.length <= 2 * 10, 'and at most what was under way besides');
  },
  { isNew: true },
);

onBoth(
  t,
  'after kill -9 during work every job is completed, and none runs after its completion',
  async (t, subject) => {
    const store = await subject.open();
    const count = 200;
    await fill(store, count, count);
    const children = ['a', 'b'].map((owner) => startWorker(t, subject, { owner, mode: 'work' }));
    const said = await Promise.all(children.map((child) => heard(child, 10 + Math.floor(Math.random() * 80))));
    await areGone(subject, ['a', 'b']);
    // No process that could hold a lease is left.
    await subject.sql('UPDATE "jobs" SET "dueAt" = 1');
    const lines = said.flat();
    for (;;) {
      const jobs = await store.claimJobs('last', ['delivery'], 50, hour);
      if (jobs.length === 0) break;
      for (const job of jobs) lines.push(`begin ${job.payload['number']}`);
      await Promise.all(jobs.map((job) => store.completeJob(job)));
    }
    t.strictSame(await subject.sql('SELECT * FROM "jobs"'), []);
    const begun = new Map<string, number>();
    const done = new Set<string>();
    const faults: string[] = [];
    for (const line of lines) {
      const [what = '', number = ''] = line.split(' ');
      if (done.has(number)) faults.push(`${line} after it was done`);
      if (what === 'done') done.add(number);
      else begun.set(number, (begun.get(number) ?? 0) + 1);
    }
    t.strictSame(faults, []);
    t.equal(begun.size, count);
    t.ok([...begun.values()].filter((times) => times > 1).length <= 2 * 5, 'only what was under way was begun again');
  },
);

/** A job and a run, and another process that has taken them for a moment and waits for a line of input. */
async function heldByAnother(t: Test, subject: Subject) {
  const { store, item } = await withItem(subject);
  await store.enqueueRun(wishFor(item));
  await store.enqueueJob({ kind: 'delivery', key: 'k', payload: { number: 1 } });
  const holder = startWorker(t, subject, { owner: 'holder', mode: 'hold', leaseMs: 400 });
  if (!holder.stdout) throw new Error('standard output is not a pipe');
  const lines = createInterface({ input: holder.stdout });
  const [first] = await once(lines, 'line');
  t.equal(first, 'holds');
  return { store, holder, lines };
}

/** Waits until the leases have run out by the database's clock. */
async function takenOver(t: Test, store: ReviewStore) {
  let job: Job | undefined;
  while (!job) {
    [job] = await store.claimJobs('heir', ['delivery'], 1, hour);
    if (!job) await pause(20);
  }
  let claim = await store.claimRun('heir', hour, many);
  while (!claim) {
    await pause(20);
    claim = await store.claimRun('heir', hour, many);
  }
  t.match(job, { attempt: 2, lease: { owner: 'heir', token: 2 } });
  t.match(claim, { run: { attempt: 2 }, lease: { owner: 'heir', token: 2 } });
  return { job, claim };
}

onBoth(t, 'another process continues after the leases of a killed one expire', async (t, subject) => {
  const { store, holder } = await heldByAnother(t, subject);
  const gone = once(holder, 'exit');
  holder.kill('SIGKILL');
  await gone;
  const { job, claim } = await takenOver(t, store);
  t.equal(await store.completeJob(job), true);
  t.match(await store.updateRun(claim.run.runId, claim.lease, { state: 'done' }), { state: 'done' });
});

onBoth(t, 'a process that slept past its leases changes nothing', async (t, subject) => {
  const { store, holder, lines } = await heldByAnother(t, subject);
  holder.kill('SIGSTOP');
  const { job, claim } = await takenOver(t, store);
  const said: string[] = [];
  lines.on('line', (line) => said.push(line));
  const closed = once(holder, 'close');
  holder.stdin?.end('go\n');
  holder.kill('SIGCONT');
  await closed;
  t.strictSame(said, ['job false', 'run LeaseLostError']);
  t.match(await store.run(claim.run.runId), { state: 'queued', attempt: 2, finishedAt: null });
  t.equal(await store.completeJob(job), true, 'its heir still has it');
  t.match(await store.updateRun(claim.run.runId, claim.lease, { state: 'done' }), { state: 'done' });
});
