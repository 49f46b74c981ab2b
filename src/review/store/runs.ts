import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { ReviewRunState } from '../../protocol/index.ts';
import { claimRun } from './claim-run.ts';
import { type Database, locksRows, type Rows } from './database.ts';
import { noItem } from './errors.ts';
import { isHeldRun, lost, noHolder } from './leases.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { runRow } from './tables.ts';
import type { Lease, ReviewStore, StoredRun } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<
  ReviewStore,
  'enqueueRun' | 'claimRun' | 'renewRun' | 'updateRun' | 'releaseRun' | 'requestCancel' | 'run' | 'runs'
>;
type RunRequest = Parameters<ReviewStore['enqueueRun']>[0];

const ends: ReadonlySet<ReviewRunState> = new Set(['done', 'failed', 'cancelled', 'superseded']);
const free = { ...noHolder, leaseUntil: 0 } as const;

/** Stores review runs: waiting, active and ended. */
export function runs(database: Database, wakes: Wakes): Methods {
  const woken = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    wakes.notify('runs');
    return result;
  };
  return {
    enqueueRun: (request) => woken(database.write((rows) => enqueue(database, rows, request))),

    claimRun: (owner, leaseMs, limits, affinity = []) =>
      database.write((rows) => claimRun(database, rows, { owner, leaseMs, limits, affinity })),

    renewRun: (runId, lease, leaseMs) =>
      database.statement(async (rows) => {
        const found = await rows
          .updateTable('runs')
          .set({ leaseUntil: sql<number>`${database.now} + ${leaseMs}` })
          .where(isHeldRun(runId, lease))
          .returning(['leaseUntil', 'isCancelRequested'])
          .executeTakeFirst();
        if (!found) throw lost(runId);
        const until = Number(found.leaseUntil);
        return { lease: { ...lease, until }, isCancelRequested: found.isCancelRequested === 1 };
      }),

    updateRun: async (runId, lease, change) => {
      const isEnd = change.state !== undefined && ends.has(change.state);
      const updated = database.statement(async (rows) => {
        const found = await rows
          .updateTable('runs')
          .set({
            ...(isEnd && { finishedAt: database.now, phase: null, ...free }),
            ...runRow.change(change),
            // Unchanged: SET needs at least one column.
            leaseToken: lease.token,
          })
          .where(isHeldRun(runId, lease))
          .returningAll()
          .executeTakeFirst();
        if (!found) throw lost(runId);
        return runRow.decode(found);
      });
      return isEnd ? woken(updated) : updated;
    },

    releaseRun: (runId, lease, nextAttemptAt) =>
      woken(database.write((rows) => release(database, rows, { runId, lease, nextAttemptAt }))),

    requestCancel: (runId) => woken(database.write((rows) => cancel(database, rows, runId))),

    run: (runId) =>
      database.read(async (rows) => {
        const found = await rows.selectFrom('runs').selectAll().where('runId', '=', runId).executeTakeFirst();
        return found && runRow.decode(found);
      }),

    runs: (filter) => database.read((rows) => listed(rows, filter)),
  };
}

/** Column values of a run that a newer one replaced. */
const superseded = (database: Database) =>
  ({ state: 'superseded', phase: null, finishedAt: database.now, ...free }) as const;

async function enqueue(database: Database, rows: Rows, request: RunRequest) {
  const item = await rows
    .selectFrom('items')
    .select(['dispatchedHeadSha', 'headSha'])
    .where('itemId', '=', request.itemId)
    .$if(locksRows(database), (query) => query.forUpdate())
    .executeTakeFirst();
  if (!item) throw noItem(request.itemId);
  const present = await rows
    .selectFrom('runs')
    .selectAll()
    .where('itemId', '=', request.itemId)
    .where('phase', 'is not', null)
    .$if(locksRows(database), (query) => query.forUpdate())
    .execute();
  const same =
    present.map(runRow.decode).find((run) => covers(run, request)) ?? (await dispatched(rows, request, item));
  if (same) return { run: same, isNew: false };
  // A leased run continues. A run without a holder is superseded, unless it is publishing.
  const givesWay = present.filter(
    ({ phase, leaseOwner, state }) => phase === 'waiting' || (leaseOwner === null && state !== 'publishing'),
  );
  for (const { runId } of givesWay)
    await rows.updateTable('runs').set(superseded(database)).where('runId', '=', runId).execute();
  await rows
    .updateTable('items')
    .set({ dispatchedHeadSha: request.headSha })
    .where('itemId', '=', request.itemId)
    .execute();
  return { run: await insert(database, rows, request), isNew: true };
}

const covers = (run: StoredRun, request: RunRequest): boolean =>
  run.headSha === request.headSha &&
  run.focus === request.focus &&
  !run.isCancelRequested &&
  !(request.scope === 'full' && run.scope === 'incremental');

/**
 * Returns the latest run of a head that is dispatched already. Two replicas can find the same new head; the second must not start
 * another run, even after the first has ended.
 */
async function dispatched(rows: Rows, request: RunRequest, item: { readonly dispatchedHeadSha: string | null }) {
  if (request.trigger !== 'auto' || item.dispatchedHeadSha !== request.headSha) return undefined;
  const found = await rows
    .selectFrom('runs')
    .selectAll()
    .where('itemId', '=', request.itemId)
    .where('headSha', '=', request.headSha)
    .orderBy('key', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found && runRow.decode(found);
}

async function insert(database: Database, rows: Rows, request: RunRequest): Promise<StoredRun> {
  const run: StoredRun = {
    deliveryId: null,
    ...request,
    runId: randomUUID(),
    state: 'queued',
    attempt: 1,
    nextAttemptAt: null,
    threadId: null,
    turnId: null,
    draftId: null,
    worktreePath: null,
    error: null,
    isCancelRequested: false,
    createdAt: 0,
    startedAt: null,
    finishedAt: null,
  };
  const [source = ''] = request.repositoryKey.split('/', 1);
  const row = await rows
    .insertInto('runs')
    .values({ ...runRow.encode(run), createdAt: database.now, source, phase: 'waiting', leaseToken: 0, ...free })
    .returningAll()
    .executeTakeFirstOrThrow();
  return runRow.decode(row);
}

interface Release {
  readonly runId: string;
  readonly lease: Lease;
  readonly nextAttemptAt: number | null;
}

async function release(database: Database, rows: Rows, { runId, lease, nextAttemptAt }: Release): Promise<void> {
  const held = await rows
    .updateTable('runs')
    .set({ nextAttemptAt, ...free })
    .where(isHeldRun(runId, lease))
    .returning(['itemId', 'state'])
    .executeTakeFirst();
  if (!held) throw lost(runId);
  if (held.state === 'publishing') return;
  const newer = await rows
    .selectFrom('runs')
    .select('runId')
    .where('itemId', '=', held.itemId)
    .where('phase', '=', 'waiting')
    .executeTakeFirst();
  if (newer) await rows.updateTable('runs').set(superseded(database)).where('runId', '=', runId).execute();
}

/** A publishing run completes its publication or is ended by its holder, because users may have read a part of it. */
async function cancel(database: Database, rows: Rows, runId: string): Promise<StoredRun | undefined> {
  const query = rows.updateTable('runs').where('runId', '=', runId);
  const row =
    (await query
      .set({ isCancelRequested: 1, state: 'cancelled', phase: null, nextAttemptAt: null, finishedAt: database.now })
      .where(isIdle)
      .returningAll()
      .executeTakeFirst()) ??
    (await query.set({ isCancelRequested: 1 }).where('phase', '=', 'active').returningAll().executeTakeFirst()) ??
    (await rows.selectFrom('runs').selectAll().where('runId', '=', runId).executeTakeFirst());
  return row && runRow.decode(row);
}

/** Condition for a run without a holder that has not begun to publish. */
const isIdle = sql<boolean>`("phase" = 'waiting'
  or ("phase" = 'active' and "leaseOwner" is null and "state" <> 'publishing'))`;

async function listed(rows: Rows, { itemId, state, limit, cursor }: Parameters<ReviewStore['runs']>[0]) {
  let query = rows
    .selectFrom('runs')
    .selectAll()
    .orderBy('key', 'desc')
    .limit(pageSize(limit) + 1);
  if (itemId !== undefined) query = query.where('itemId', '=', itemId);
  if (state !== undefined) query = query.where('state', '=', state as ReviewRunState);
  if (cursor !== undefined) query = query.where('key', '<', positionOf(cursor, ['key']).key);
  return pageOf(await query.execute(), limit, runRow.decode, ({ key }) => [Number(key)]);
}
