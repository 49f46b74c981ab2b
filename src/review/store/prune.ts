import { sql } from 'kysely';
import type { Database, Rows } from './database.ts';
import { limits } from './limits.ts';
import { type ReviewStore, runFactPrefixes } from './types.ts';

type Before = Parameters<ReviewStore['prune']>[0];

/** Deletes old rows, one slice per transaction. @param before milliseconds since the epoch @returns number of deleted rows */
export async function prune(database: Database, before: Before): Promise<number> {
  const slices: readonly ((rows: Rows) => Promise<number>)[] = [
    (rows) => deliveries(rows, before.deliveries),
    (rows) => deadJobs(rows, before.deliveries),
    (rows) => syncJobs(rows, before.deliveries),
    (rows) => events(rows, before.events),
    (rows) => runs(rows, before.runs),
    ...runFactPrefixes.map((prefix) => (rows: Rows) => orphanedFacts(rows, prefix)),
    (rows) => runlessWrites(rows, before.runs),
    (rows) => commands(rows, before.runs),
  ];
  let all = 0;
  for (const slice of slices) {
    for (let gone = 1; gone > 0; all += gone) gone = await database.write(slice);
  }
  return all;
}

const count = ({ numDeletedRows }: { readonly numDeletedRows: bigint }) => Number(numDeletedRows);

/** Reads the first rows by key, which are the oldest: an index on the time would slow down each delivery. */
const deliveries = async (rows: Rows, before: number) =>
  count(
    await rows
      .deleteFrom('deliveries')
      .where('key', 'in', (all) =>
        all
          .selectFrom(
            all
              .selectFrom('deliveries')
              .select(['key', 'receivedAt'])
              .orderBy('key')
              .limit(limits.pruneSlice)
              .as('first'),
          )
          .select('key')
          .where('receivedAt', '<', before),
      )
      .executeTakeFirstOrThrow(),
  );

const deadJobs = async (rows: Rows, before: number) =>
  count(
    await rows
      .deleteFrom('deadJobs')
      .where('jobId', 'in', (all) =>
        all.selectFrom('deadJobs').select('jobId').where('diedAt', '<', before).limit(limits.pruneSlice),
      )
      .executeTakeFirstOrThrow(),
  );

const syncJobs = async (rows: Rows, before: number) =>
  count(
    await rows
      .deleteFrom('syncJobs')
      .where('key', 'in', (all) =>
        all.selectFrom('syncJobs').select('key').where('createdAt', '<', before).limit(limits.pruneSlice),
      )
      .executeTakeFirstOrThrow(),
  );

/** Deletes facts of deleted runs. */
const orphanedFacts = async (rows: Rows, prefix: string) =>
  count(
    await rows
      .deleteFrom('facts')
      .where('name', 'in', (all) =>
        all
          .selectFrom('facts')
          .select('name')
          .where('name', 'like', `${prefix}%`)
          .where(
            sql<boolean>`not exists (select 1 from "runs"
              where "runs"."runId" = substr("facts"."name", ${sql.lit(prefix.length + 1)}))`,
          )
          .limit(limits.pruneSlice),
      )
      .executeTakeFirstOrThrow(),
  );

/** Deletes writes without a run: replies to commands, and drafts published by users. */
const runlessWrites = async (rows: Rows, before: number) =>
  count(
    await rows
      .deleteFrom('writes')
      .where('key', 'in', (all) =>
        all
          .selectFrom('writes')
          .select('key')
          .where('runId', 'is', null)
          .where('createdAt', '<', before)
          .where('status', '<>', 'pending')
          .limit(limits.pruneSlice),
      )
      .executeTakeFirstOrThrow(),
  );

/** A command on an open item stays: its comment can be edited, which must not run it again. */
const commands = async (rows: Rows, before: number) =>
  count(
    await rows
      .deleteFrom('commands')
      .where('commentId', 'in', (all) =>
        all
          .selectFrom('commands')
          .select('commentId')
          .where('createdAt', '<', before)
          .where(
            sql<boolean>`not exists (select 1 from "items" where "items"."repositoryKey" = "commands"."repositoryKey"
              and "items"."number" = "commands"."number" and "items"."state" = 'open')`,
          )
          .limit(limits.pruneSlice),
      )
      .executeTakeFirstOrThrow(),
  );

/** The newest event stays: readers continue after it. */
const events = async (rows: Rows, before: number) =>
  count(
    await rows
      .deleteFrom('events')
      .where('seq', 'in', (all) =>
        all
          .selectFrom('events')
          .select('seq')
          .where('at', '<', before)
          .where(sql<boolean>`"seq" < (select max("seq") from "events")`)
          .limit(limits.pruneSlice),
      )
      .executeTakeFirstOrThrow(),
  );

/** A run with unresolved published findings on an open item stays: without them, later runs would publish them again. */
async function runs(rows: Rows, before: number): Promise<number> {
  const old = await rows
    .selectFrom('runs')
    .select('runId')
    .where('finishedAt', '<', before)
    .where(
      sql<boolean>`not exists (select 1 from "drafts" join "findings" on "findings"."draftId" = "drafts"."draftId"
        join "items" on "items"."itemId" = "drafts"."itemId"
        where "drafts"."runId" = "runs"."runId" and "items"."state" = 'open'
        and "findings"."isPublished" = 1 and "findings"."isResolved" = 0)`,
    )
    .orderBy('finishedAt')
    .limit(limits.pruneSlice)
    .execute();
  const runIds = old.map(({ runId }) => runId);
  if (runIds.length === 0) return 0;
  let gone = 0;
  for (const table of ['drafts', 'writes', 'runs'] as const)
    gone += count(await rows.deleteFrom(table).where('runId', 'in', runIds).executeTakeFirstOrThrow());
  return gone;
}
