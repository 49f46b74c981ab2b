import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createLogger } from '../src/log/index.ts';
import { openReviewStore, type ReviewStore } from '../src/review/store/index.ts';
import { startPostgres } from '../test/review/postgres.ts';
import { type Benchmark, type Check, type Context, figure, firstLine, median, type Started, start } from './harness.ts';

const replicas = 4;
const atOnce = 50;
const senders = 64;
const logger = createLogger({ name: 'bench', level: 'warn' });

/**
 * Claims and completes until the queue gives nothing more; `workers` at a time.
 * @returns the numbers of the jobs that it has completed
 */
export async function drain(store: ReviewStore, owner: string, workers: number): Promise<number[]> {
  const done: number[] = [];
  const work = async () => {
    for (;;) {
      const jobs = await store.claimJobs(owner, ['delivery'], atOnce, 600_000);
      if (jobs.length === 0) return;
      await Promise.all(
        jobs.map(async (job) => {
          if (!(await store.completeJob(job))) throw new Error(`The lease of job ${job.jobId} was lost`);
          done.push(Number(job.payload['number']));
        }),
      );
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return done;
}

async function fill(store: ReviewStore, count: number): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) {
      const number = next;
      next += 1;
      await store.enqueueJob({
        kind: 'delivery',
        key: `octo/hello#${number}`,
        payload: { number },
        dedupe: `${number}`,
      });
    }
  };
  await Promise.all(Array.from({ length: 256 }, work));
}

/** Throws when one is missing or was there twice. */
function checkOnce(done: readonly number[], count: number): void {
  if (new Set(done).size !== count || done.length !== count)
    throw new Error(`${count} jobs were to run once each; ${done.length} did, ${new Set(done).size} different ones`);
}

const perSecond = (count: number, from: number) => count / ((performance.now() - from) / 1_000);

/** @returns jobs per second */
async function sqliteJobs(store: ReviewStore, count: number): Promise<number> {
  await fill(store, count);
  const from = performance.now();
  const done = await drain(store, 'one', 4);
  const rate = perSecond(count, from);
  checkOnce(done, count);
  return rate;
}

interface Intake {
  readonly rate: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Senders that each wait until their delivery is on the disk before they send the next. */
async function intake(store: ReviewStore, round: number, count: number): Promise<Intake> {
  const times: number[] = [];
  let next = 0;
  const send = async () => {
    while (next < count) {
      next += 1;
      const deliveryId = `${round} ${next}`;
      const number = next % 5_000;
      const key = `octo/hello#${number}`;
      const at = performance.now();
      await store.takeDelivery({
        deliveryId,
        event: 'pull_request',
        action: 'synchronize',
        repositoryKey: 'github:github.com/octo/hello',
        number,
        sender: 'octocat',
        outcome: 'queued',
        reason: null,
        tookMs: 1,
        job: { kind: 'delivery', key, payload: { number, reason: 'synchronize' }, dedupe: key },
        command: null,
      });
      times.push(performance.now() - at);
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: senders }, send));
  const rate = perSecond(count, from);
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { rate, p50Ms: at(0.5), p99Ms: at(0.99) };
}

function startReplica(connectionString: string): Started {
  const file = join(import.meta.dirname, 'review-queue-worker.ts');
  const args = ['--disable-warning=ExperimentalWarning', '--conditions=development', file, connectionString];
  return start({ command: process.execPath, args });
}

/** All replicas begin at once. @returns jobs per second, all together */
async function postgresJobs(store: ReviewStore, connectionString: string, count: number): Promise<number> {
  await fill(store, count);
  const all = Array.from({ length: replicas }, () => startReplica(connectionString));
  await Promise.all(all.map(({ child }) => firstLine(child, 60_000)));
  const ends = all.map(async ({ child }) => {
    if (!child.stdout) throw new Error('standard output is not a pipe');
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    return JSON.parse(String(line)) as number[];
  });
  const from = performance.now();
  for (const { child } of all) child.stdin?.write('go\n');
  const done = await Promise.all(ends);
  const rate = perSecond(count, from);
  await Promise.all(all.map((each) => each.stop()));
  checkOnce(done.flat(), count);
  return rate;
}

async function onSqlite(rounds: number, jobs: number, deliveries: number) {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-queue-'));
  const store = await openReviewStore({ directory, owner: 'one', logger });
  try {
    const rates: number[] = [];
    const intakes: Intake[] = [];
    for (let round = 0; round < rounds; round += 1) {
      rates.push(await sqliteJobs(store, jobs));
      intakes.push(await intake(store, round, deliveries));
      await drain(store, 'one', 4);
    }
    return { rates, intakes };
  } finally {
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function onPostgres(rounds: number, jobs: number): Promise<number[]> {
  const server = await startPostgres({ isDurable: true });
  try {
    const connectionString = await server.database();
    const store = await openReviewStore({ connectionString, owner: 'filler', logger });
    const rates: number[] = [];
    try {
      for (let round = 0; round < rounds; round += 1) rates.push(await postgresJobs(store, connectionString, jobs));
    } finally {
      await store.close();
    }
    return rates;
  } finally {
    await server.stop();
  }
}

async function run({ quick, rounds }: Context) {
  const jobs = quick ? 10_000 : Math.ceil(100_000 / rounds);
  const { rates, intakes } = await onSqlite(rounds, jobs, quick ? 5_000 : 20_000);
  const postgres = await onPostgres(rounds, jobs);
  const of = (name: keyof Intake) => median(intakes.map((each) => each[name]));
  const checks: Check[] = [
    { what: 'jobs claimed and completed on SQLite', measured: median(rates), atLeast: 3_000, unit: '/s' },
    { what: `the same on PostgreSQL by ${replicas} replicas`, measured: median(postgres), atLeast: 1_400, unit: '/s' },
    { what: 'durable deliveries on SQLite', measured: of('rate'), atLeast: 2_000, unit: '/s' },
    { what: '99 of 100 of them within', measured: of('p99Ms'), atMost: 50, unit: ' ms' },
  ];
  return {
    tables: [
      {
        title: `Queue of the review backend: ${figure(jobs * rounds)} jobs, none of them run twice or left out`,
        columns: ['', 'per second', 'p50, ms', 'p99, ms'],
        rows: [
          ['SQLite, one process: claim and complete', median(rates), '', ''],
          [`PostgreSQL, ${replicas} processes: claim and complete`, median(postgres), '', ''],
          [`SQLite: durable deliveries, ${senders} senders`, of('rate'), of('p50Ms'), of('p99Ms')],
        ],
      },
    ],
    checks,
    notes: ['A delivery is answered when it and its job are flushed to the disk. PostgreSQL runs with `fsync`.'],
  };
}

export const reviewQueue: Benchmark = { name: 'review-queue', title: 'Queue of the review backend', run };
