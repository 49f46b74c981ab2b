import { sql } from 'kysely';
import { batched } from './batched.ts';
import { type Database, locksRows, type Rows } from './database.ts';
import { isHeldJob, noHolder } from './leases.ts';
import { limits } from './limits.ts';
import { pageSize } from './paging.ts';
import { prepared } from './prepared.ts';
import { deadJobRow, type Tables } from './tables.ts';
import type { Job, NewJob, ReviewStore } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<ReviewStore, 'enqueueJob' | 'claimJobs' | 'renewJob' | 'completeJob' | 'failJob' | 'deadJobs'>;

/** Stores jobs. Each runs at least once; jobs with the same key run one at a time and in order. */
export function jobs(database: Database, wakes: Wakes): Methods {
  const completed = batched(limits.completions, (all: readonly Job[]) =>
    database.statement((rows) => removeHeld(rows, all)),
  );
  return {
    enqueueJob: async (job) => {
      await database.write((rows) => insertJob(database, rows, job));
      wakes.notify('jobs');
    },

    claimJobs: (owner, kinds, limit, leaseMs) =>
      kinds.length === 0 || limit < 1
        ? Promise.resolve([])
        : database.statement((rows) => claim(database, rows, { owner, kinds, limit, leaseMs })),

    renewJob: (job, leaseMs) =>
      database.statement(async (rows) => {
        const row = await rows
          .updateTable('jobs')
          .set({ dueAt: sql`${database.now} + ${leaseMs}` })
          .where(isHeldJob(job))
          .returning('dueAt')
          .executeTakeFirst();
        return row && { ...job, lease: { ...job.lease, until: Number(row.dueAt) } };
      }),

    completeJob: async (job) => (await completed(job)) || runAgain(database, wakes, job),

    failJob: async (job, error, delayMs, { keepsAttempt } = { keepsAttempt: false }) => {
      const isHeld = await (delayMs === 'dead'
        ? database.write((rows) => moveToDeadJobs(database, rows, job, error))
        : database.statement(async (rows) => {
            const { numUpdatedRows } = await rows
              .updateTable('jobs')
              .set({
                ...noHolder,
                again: 0,
                lastError: error,
                dueAt: sql`${database.now} + ${delayMs}`,
                ...(keepsAttempt && { attempt: withoutAttempt(database) }),
              })
              .where(isHeldJob(job))
              .executeTakeFirstOrThrow();
            return numUpdatedRows > 0n;
          }));
      if (isHeld) wakes.notify('jobs');
      return isHeld;
    },

    deadJobs: (limit) =>
      database.read(async (rows) => {
        const found = await rows
          .selectFrom('deadJobs')
          .selectAll()
          .orderBy('diedAt', 'desc')
          .orderBy('jobId', 'desc')
          .limit(pageSize(limit))
          .execute();
        return found.map(deadJobRow.decode);
      }),
  };
}

/** A job that itself causes an outage must end some day, so that old jobs count every attempt. */
const withoutAttempt = ({ now }: Database) =>
  sql<number>`case when "createdAt" > ${now} - ${limits.keptAttemptsMs} then "attempt" - 1 else "attempt" end`;

/**
 * Adds a job in the transaction of its cause. Jobs with the same key are numbered in the order of their commits: a reader that sees a
 * later one cannot miss an earlier one.
 */
export async function insertJob(database: Database, rows: Rows, job: NewJob): Promise<void> {
  const { kind, key, payload, dedupe = null, delayMs = 0 } = job;
  await database.lock(rows, `job ${key}`);
  await insert(database, rows, { kind, key, payload: JSON.stringify(payload), dedupe, delayMs });
}

interface NewRow {
  readonly kind: string;
  readonly key: string;
  readonly payload: string;
  readonly dedupe: string | null;
  readonly delayMs: number;
}

const insert = prepared(({ now }, rows, { kind, key, payload, dedupe, delayMs }: NewRow) =>
  rows
    .insertInto('jobs')
    .values({
      ...{ kind, key, payload, dedupe },
      dueAt: sql<number>`${now} + ${delayMs}`,
      attempt: 0,
      again: 0,
      lastError: null,
      createdAt: now,
      leaseToken: 0,
      ...noHolder,
    })
    .onConflict((conflict) =>
      conflict.columns(['kind', 'dedupe']).doUpdateSet({
        again: sql`case when "jobs"."leaseOwner" is null then 0 else 1 end`,
        // The earlier of two requested times counts; a leased job retains the end of its lease.
        dueAt: sql`case when "jobs"."leaseOwner" is null and "jobs"."dueAt" > "excluded"."dueAt"
          then "excluded"."dueAt" else "jobs"."dueAt" end`,
      }),
    ),
);

/** Removes jobs whose lease is still held and that were not requested again since the lease. @returns whether each was removed */
async function removeHeld(rows: Rows, all: readonly Job[]): Promise<readonly boolean[]> {
  const gone = await rows
    .deleteFrom('jobs')
    .where(sql<boolean>`(${sql.join(all.map(isHeldJob), sql` or `)})`)
    .where('again', '=', 0)
    .returning(['jobId', 'leaseToken'])
    .execute();
  const removed = new Set(gone.map(({ jobId, leaseToken }) => `${jobId} ${leaseToken}`));
  // When the same job is completed twice, only the first call returns true.
  return all.map(({ jobId, lease }) => removed.delete(`${jobId} ${lease.token}`));
}

interface Claim {
  readonly owner: string;
  readonly kinds: readonly Job['kind'][];
  readonly limit: number;
  readonly leaseMs: number;
}

async function claim(database: Database, rows: Rows, { owner, kinds, limit, leaseMs }: Claim): Promise<Job[]> {
  const { rows: found } = await claimOf(kinds)(database, rows, { owner, limit: pageSize(limit), leaseMs });
  return found.map((row) => jobOf(row, owner)).sort((a, b) => a.jobId - b.jobId);
}

/** Claims by their kinds, which are those of a lane: each wake-up claims for all lanes, most of them without a due job. */
const claims = new Map<string, ReturnType<typeof preparedClaim>>();

function claimOf(kinds: Claim['kinds']) {
  const key = kinds.join(' ');
  const known = claims.get(key) ?? preparedClaim(kinds);
  claims.set(key, known);
  return known;
}

const preparedClaim = (kinds: Claim['kinds']) =>
  prepared((database, rows, { owner, limit, leaseMs }: Omit<Claim, 'kinds'>) =>
    rows
      .with('picked', (all) =>
        all
          .selectFrom('jobs')
          .select('jobId')
          .where('dueAt', '<=', database.now)
          .where(isOneOf(kinds))
          .where(
            sql<boolean>`not exists (select 1 from "jobs" as "earlier"
            where "earlier"."key" = "jobs"."key" and "earlier"."jobId" < "jobs"."jobId")`,
          )
          .orderBy('dueAt')
          .orderBy('jobId')
          .limit(limit)
          .$if(locksRows(database), (query) => query.forUpdate().skipLocked()),
      )
      .updateTable('jobs')
      .set({
        leaseOwner: owner,
        leaseToken: sql`"leaseToken" + 1`,
        dueAt: sql`${database.now} + ${leaseMs}`,
        attempt: sql`"attempt" + 1`,
        again: 0,
      })
      .where('jobId', 'in', (all) => all.selectFrom('picked').select('jobId'))
      .returning(['jobId', 'kind', 'key', 'payload', 'attempt', 'leaseToken', 'dueAt']),
  );

/**
 * A `case` expression, because both planners would take a plain `in` for selective: they would then read and sort all jobs of these
 * kinds instead of following the index on the due time.
 */
const isOneOf = (kinds: Claim['kinds']) => sql<boolean>`case when "kind" in (${sql.join(kinds)}) then 1 else 0 end > 0`;

type JobRow = Pick<Tables['jobs'], 'kind' | 'key' | 'payload' | 'attempt' | 'leaseToken' | 'dueAt'> & {
  readonly jobId: number;
};
const jobOf = (row: JobRow, owner: string): Job => ({
  jobId: Number(row.jobId),
  kind: row.kind as Job['kind'],
  key: row.key,
  payload: JSON.parse(row.payload) as Job['payload'],
  attempt: Number(row.attempt),
  lease: { owner, token: Number(row.leaseToken), until: Number(row.dueAt) },
});

/** Queues a job again that was requested while it ran. @returns false when the lease was lost */
async function runAgain(database: Database, wakes: Wakes, job: Job): Promise<boolean> {
  const isHeld = await database.statement(async (rows) => {
    const { numUpdatedRows } = await rows
      .updateTable('jobs')
      .set({ ...noHolder, again: 0, attempt: 0, dueAt: database.now })
      .where(isHeldJob(job))
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  });
  if (isHeld) wakes.notify('jobs');
  return isHeld;
}

/** Moves a job to the dead jobs. A request made while it ran becomes a new job with its own attempts. */
async function moveToDeadJobs(database: Database, rows: Rows, job: Job, error: string): Promise<boolean> {
  await database.lock(rows, `job ${job.key}`);
  const row = await rows
    .deleteFrom('jobs')
    .where(isHeldJob(job))
    .returning(['again', 'dedupe', 'payload'])
    .executeTakeFirst();
  if (!row) return false;
  const { jobId, kind, key, attempt } = job;
  await rows
    .insertInto('deadJobs')
    .values({ jobId, kind, key, payload: row.payload, attempt, error, diedAt: database.now })
    .execute();
  if (Number(row.again) === 1)
    await insertJob(database, rows, {
      kind,
      key,
      payload: job.payload,
      ...(row.dedupe !== null && { dedupe: row.dedupe }),
    });
  return true;
}
