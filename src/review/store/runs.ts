import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { ReviewRunState } from '../../protocol/index.ts';
import { claimRun } from './claim-run.ts';
import { type Database, locksRows, type Rows } from './database.ts';
import { noItem } from './errors.ts';
import { isHeldRun, lost, nobody } from './leases.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { runRow } from './tables.ts';
import type { Lease, ReviewStore, StoredRun } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<
  ReviewStore,
  'enqueueRun' | 'claimRun' | 'renewRun' | 'updateRun' | 'releaseRun' | 'requestCancel' | 'run' | 'runs'
>;
type Wish = Parameters<ReviewStore['enqueueRun']>[0];

const ends: ReadonlySet<ReviewRunState> = new Set(['done', 'failed', 'cancelled', 'superseded']);
const free = { ...nobody, leaseUntil: 0 } as const;

/** Reviews that wait, are worked on, and have ended. */
export function runs(database: Database, wakes: Wakes): Methods {
  const woken = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    wakes.tell('runs');
    return result;
  };
  return {
    enqueueRun: (wish) => woken(database.write((rows) => enqueue(database, rows, wish))),

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
            // The holder stays who it is; SET must name something.
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

/** What a run's row looks like when it gave way to a newer one. */
const superseded = (database: Database) =>
  ({ state: 'superseded', phase: null, finishedAt: database.now, ...free }) as const;

async function enqueue(database: Database, rows: Rows, wish: Wish) {
  const item = await rows
    .selectFrom('items')
    .select(['dispatchedHeadSha', 'headSha'])
    .where('itemId', '=', wish.itemId)
    .$if(locksRows(database), (query) => query.forUpdate())
    .executeTakeFirst();
  if (!item) throw noItem(wish.itemId);
  const present = await rows
    .selectFrom('runs')
    .selectAll()
    .where('itemId', '=', wish.itemId)
    .where('phase', 'is not', null)
    .$if(locksRows(database), (query) => query.forUpdate())
    .execute();
  const same = present.map(runRow.decode).find((run) => covers(run, wish)) ?? (await dispatched(rows, wish, item));
  if (same) return { run: same, isNew: false };
  // One that somebody works on goes on; one that nobody has gives way, unless it is telling what it found.
  const givesWay = present.filter(
    ({ phase, leaseOwner, state }) => phase === 'waiting' || (leaseOwner === null && state !== 'publishing'),
  );
  for (const { runId } of givesWay)
    await rows.updateTable('runs').set(superseded(database)).where('runId', '=', runId).execute();
  await rows.updateTable('items').set({ dispatchedHeadSha: wish.headSha }).where('itemId', '=', wish.itemId).execute();
  return { run: await insert(database, rows, wish), isNew: true };
}

const covers = (run: StoredRun, wish: Wish): boolean =>
  run.headSha === wish.headSha &&
  run.focus === wish.focus &&
  !run.isCancelRequested &&
  !(wish.scope === 'full' && run.scope === 'incremental');

/** Two replicas may find the same new head: the second one comes when the first one's run has ended, and makes no other. */
async function dispatched(rows: Rows, wish: Wish, item: { readonly dispatchedHeadSha: string | null }) {
  if (wish.trigger !== 'auto' || item.dispatchedHeadSha !== wish.headSha) return undefined;
  const found = await rows
    .selectFrom('runs')
    .selectAll()
    .where('itemId', '=', wish.itemId)
    .where('headSha', '=', wish.headSha)
    .orderBy('key', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found && runRow.decode(found);
}

async function insert(database: Database, rows: Rows, wish: Wish): Promise<StoredRun> {
  const run: StoredRun = {
    deliveryId: null,
    ...wish,
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
  const [source = ''] = wish.repositoryKey.split('/', 1);
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

/** What is being published is told to its end, or its holder ends it: somebody has read a part of it. */
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

/** Nobody works on it, and it has not begun to publish. */
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
