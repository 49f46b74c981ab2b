import { randomUUID } from 'node:crypto';
import type { Database, Rows } from './database.ts';
import { insertJob } from './jobs.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { writeRow } from './tables.ts';
import type { NewJob, NewWrite, ReviewStore, StoredWrite } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<ReviewStore, 'putWrite' | 'write' | 'writes' | 'updateWrite'>;

/** Stores the outbox: writes to the source, each sent once. */
export function writes(database: Database, wakes: Wakes): Methods {
  return {
    putWrite: async (write, job) => {
      const stored = await database.write((rows) => put(database, rows, write, job));
      if (job) wakes.notify('jobs');
      return stored;
    },

    write: (writeId) =>
      database.read(async (rows) => {
        const row = await rows.selectFrom('writes').selectAll().where('writeId', '=', writeId).executeTakeFirst();
        return row && writeRow.decode(row);
      }),

    writes: (filter) => database.read((rows) => listed(rows, filter)),

    updateWrite: (writeId, change) =>
      database.statement(async (rows) => {
        const { status, ...rest } = writeRow.change(change);
        let query = rows
          .updateTable('writes')
          .set({ writeId, ...rest })
          .where('writeId', '=', writeId);
        if (status !== undefined) query = query.set({ status });
        if (status === 'sent') query = query.set(({ fn }) => ({ sentAt: fn.coalesce('sentAt', database.now) }));
        else if (status !== undefined) query = query.where('status', '<>', 'sent');
        await query.execute();
      }),
  };
}

async function put(
  database: Database,
  rows: Rows,
  write: NewWrite,
  job: ((writeId: string) => NewJob) | undefined,
): Promise<StoredWrite> {
  const stored: StoredWrite = {
    ...write,
    writeId: randomUUID(),
    status: 'pending',
    attempts: 0,
    response: null,
    lastError: null,
    createdAt: 0,
    sentAt: null,
  };
  const row = await rows
    .insertInto('writes')
    .values({ ...writeRow.encode(stored), createdAt: database.now })
    .onConflict((conflict) => conflict.column('dedupeKey').doNothing())
    .returningAll()
    .executeTakeFirst();
  if (row) {
    if (job) await insertJob(database, rows, job(row.writeId));
    return writeRow.decode(row);
  }
  const known = await rows
    .selectFrom('writes')
    .selectAll()
    .where('dedupeKey', '=', write.dedupeKey)
    .executeTakeFirstOrThrow();
  return writeRow.decode(known);
}

async function listed(rows: Rows, { runId, status, limit, cursor }: Parameters<ReviewStore['writes']>[0]) {
  let query = rows
    .selectFrom('writes')
    .selectAll()
    .orderBy('key', 'desc')
    .limit(pageSize(limit) + 1);
  if (runId !== undefined) query = query.where('runId', '=', runId);
  if (status !== undefined) query = query.where('status', '=', status as StoredWrite['status']);
  if (cursor !== undefined) query = query.where('key', '<', positionOf(cursor, ['key']).key);
  return pageOf(await query.execute(), limit, writeRow.decode, ({ key }) => [Number(key)]);
}
