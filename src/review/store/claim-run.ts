import { sql } from 'kysely';
import { type Database, locksRows, type Rows } from './database.ts';
import { limits as storeLimits } from './limits.ts';
import { runRow } from './tables.ts';
import type { Lease, RunLimits, StoredRun } from './types.ts';

export interface Claim {
  readonly owner: string;
  readonly leaseMs: number;
  readonly limits: RunLimits;
  readonly affinity: readonly string[];
}

/**
 * Leases the next run that may start. A lock serialises claims, so replicas together never exceed the limits. A run with an expired
 * lease does not count towards them.
 * @returns undefined when no run may start
 */
export async function claimRun(
  database: Database,
  rows: Rows,
  claim: Claim,
): Promise<{ readonly run: StoredRun; readonly lease: Lease } | undefined> {
  await database.lock(rows, 'claimRun');
  const next = await candidate(database, rows, claim);
  if (!next) return undefined;
  const isAbandoned = next.leaseOwner !== null;
  const row = await rows
    .updateTable('runs')
    .set({
      phase: 'active',
      leaseOwner: claim.owner,
      leaseToken: sql`"leaseToken" + 1`,
      leaseUntil: sql`${database.now} + ${claim.leaseMs}`,
      attempt: sql`"attempt" + ${isAbandoned ? 1 : 0}`,
      startedAt: sql`coalesce("startedAt", ${database.now})`,
      nextAttemptAt: null,
    })
    .where('key', '=', next.key)
    .returningAll()
    .executeTakeFirstOrThrow();
  const lease = { owner: claim.owner, token: Number(row.leaseToken), until: Number(row.leaseUntil) };
  return { run: runRow.decode(row), lease };
}

function candidate(database: Database, rows: Rows, { limits, affinity }: Claim) {
  const { now } = database;
  /** Number of leased runs: all, or those with the candidate's repository or source. */
  const atWork = (shared?: 'repositoryKey' | 'source') => {
    const same = shared ? sql`and "live".${sql.ref(shared)} = "runs".${sql.ref(shared)}` : sql``;
    return sql<number>`(select count(*) from "runs" as "live"
      where "live"."phase" = 'active' and "live"."leaseUntil" > ${now} ${same})`;
  };
  const isNear = () => sql<number>`case when "repositoryKey" in (${sql.join(affinity)})
    or "createdAt" < ${now} - ${storeLimits.affinityMs} then 0 else 1 end`;
  return (
    rows
      .selectFrom('runs')
      .select(['key', 'leaseOwner'])
      .where('phase', 'is not', null)
      .where('leaseUntil', '<=', now)
      .where(sql<boolean>`coalesce("nextAttemptAt", 0) <= ${now}`)
      .where(atWork(), '<', limits.global)
      .where(atWork('repositoryKey'), '<', limits.perRepository)
      .where(atWork('source'), '<', limits.perSource)
      .where(
        sql<boolean>`("phase" = 'active' or not exists (select 1 from "runs" as "other"
        where "other"."itemId" = "runs"."itemId" and "other"."phase" = 'active'))`,
      )
      .$if(affinity.length > 0, (query) => query.orderBy(isNear()))
      // Sorted by time first: for an order by key alone SQLite would scan the whole table, including ended runs.
      .orderBy('createdAt')
      .orderBy('key')
      .limit(1)
      .$if(locksRows(database), (query) => query.forUpdate().skipLocked())
      .executeTakeFirst()
  );
}
