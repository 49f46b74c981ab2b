import { sql } from 'kysely';
import type { Database } from './database.ts';
import { pageSize } from './paging.ts';
import { syncJobRow } from './tables.ts';
import type { ReviewStore } from './types.ts';

type Methods = Pick<ReviewStore, 'putSyncJob' | 'syncJobs' | 'takeRoles' | 'fact' | 'setFact' | 'now'>;

/** Stores sync jobs, roles and facts, and reads the database's clock. */
export function singles(database: Database): Methods {
  return {
    putSyncJob: (job) =>
      database.statement(async (rows) => {
        const isOver = job.status === 'succeeded' || job.status === 'failed';
        const set = {
          ...syncJobRow.encode({ ...job, createdAt: new Date(0).toISOString() }),
          finishedAt: isOver ? database.now : null,
        };
        const { createdAt: _, ...update } = set;
        await rows
          .insertInto('syncJobs')
          .values({ ...set, createdAt: database.now })
          .onConflict((conflict) => conflict.column('jobId').doUpdateSet(update))
          .execute();
      }),

    syncJobs: (limit) =>
      database.read(async (rows) => {
        const found = await rows
          .selectFrom('syncJobs')
          .selectAll()
          .orderBy('key', 'desc')
          .limit(pageSize(limit))
          .execute();
        return found.map(syncJobRow.decode);
      }),

    takeRoles: (roles, owner, leaseMs) =>
      database.statement(async (rows) => {
        if (roles.length === 0) return new Set();
        const until = sql<number>`${database.now} + ${leaseMs}`;
        const taken = await rows
          .insertInto('roles')
          // Sorted: two processes that lock the rows in different orders could wait for each other.
          .values(roles.toSorted().map((role) => ({ role, owner, until })))
          .onConflict((conflict) =>
            conflict
              .column('role')
              .doUpdateSet({ owner, until })
              .where(({ or, eb }) => or([eb('roles.owner', '=', owner), eb('roles.until', '<=', database.now)])),
          )
          .returning('role')
          .execute();
        return new Set(taken.map(({ role }) => role));
      }),

    fact: (name) =>
      database.read(async (rows) => {
        const found = await rows.selectFrom('facts').select('value').where('name', '=', name).executeTakeFirst();
        return found?.value;
      }),

    setFact: (name, value) =>
      database.statement(async (rows) => {
        if (value === null) {
          await rows.deleteFrom('facts').where('name', '=', name).execute();
          return;
        }
        await rows
          .insertInto('facts')
          .values({ name, value })
          .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
          .execute();
      }),

    now: () =>
      database.read(async (rows) => {
        const { rows: found } = await sql<{ at: number }>`select ${database.now} as "at"`.execute(rows);
        return Number(found[0]?.at);
      }),
  };
}
