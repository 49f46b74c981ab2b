import { sql } from 'kysely';
import type { Delivery } from '../../protocol/index.ts';
import { textOrNull } from './columns.ts';
import type { Database, Rows } from './database.ts';
import { insertJob } from './jobs.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { prepared } from './prepared.ts';
import { commandRow, deliveryRow } from './tables.ts';
import type { NewCommand, NewDelivery, ReviewStore } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<
  ReviewStore,
  'takeDelivery' | 'setDeliveryOutcome' | 'settleDeliveries' | 'deliveries' | 'command' | 'updateCommand'
>;

/** Literals instead of parameters, so that the partial index `deliveriesQueued` is used. */
const isQueued = sql<boolean>`"event" = 'pull_request' and "outcome" = 'queued'`;

/** Stores deliveries and the commands in them. */
export function deliveries(database: Database, wakes: Wakes): Methods {
  return {
    takeDelivery: async (delivery) => {
      const taken = await database.write((rows) => take(database, rows, delivery));
      if (taken === 'new' && delivery.job) wakes.notify('jobs');
      return taken;
    },

    setDeliveryOutcome: (deliveryId, outcome, reason) =>
      database.statement(async (rows) => {
        await rows.updateTable('deliveries').set({ outcome, reason }).where('deliveryId', '=', deliveryId).execute();
      }),

    settleDeliveries: (repositoryKey, number, outcome, reason) =>
      database.statement(async (rows) => {
        const settled = await rows
          .updateTable('deliveries')
          .set({ outcome, reason })
          .where(isQueued)
          .where('repositoryKey', '=', repositoryKey)
          .where('number', '=', number)
          .returning('deliveryId')
          .execute();
        return settled.map(({ deliveryId }) => deliveryId);
      }),

    deliveries: (filter) => database.read((rows) => listed(rows, filter)),

    command: (commentId) =>
      database.read(async (rows) => {
        const row = await rows.selectFrom('commands').selectAll().where('commentId', '=', commentId).executeTakeFirst();
        return row && commandRow.decode(row);
      }),

    updateCommand: (commentId, change) =>
      database.statement(async (rows) => {
        await rows.updateTable('commands').set(commandRow.change(change)).where('commentId', '=', commentId).execute();
      }),
  };
}

async function take(database: Database, rows: Rows, delivery: NewDelivery): Promise<'new' | 'duplicate'> {
  const { deliveryId, job, command } = delivery;
  const row = receivedRow(delivery);
  const { rows: inserted } = await insertDelivery(database, rows, row);
  const known = inserted[0];
  if (Number(known?.redeliveries) > 0) {
    if (!known || !isJudgedAgain(known, delivery)) return 'duplicate';
    await rows.updateTable('deliveries').set(row).where('deliveryId', '=', deliveryId).execute();
  }
  const duplicate = await duplicateReason(database, rows, delivery, command);
  if (duplicate) {
    const outcome = { outcome: 'ignored', reason: duplicate } as const;
    await rows.updateTable('deliveries').set(outcome).where('deliveryId', '=', deliveryId).execute();
    return 'duplicate';
  }
  if (job) await insertJob(database, rows, job);
  return 'new';
}

const settled: ReadonlySet<string> = new Set(['queued', 'processed'] satisfies Delivery['outcome'][]);

/** An outcome that depended on the settings of its time, and differs by the present ones. */
const isJudgedAgain = (
  known: { readonly outcome: string; readonly reason: string | null },
  { outcome, reason }: NewDelivery,
): boolean => !settled.has(known.outcome) && (known.outcome !== outcome || known.reason !== reason);

async function duplicateReason(
  database: Database,
  rows: Rows,
  { digest = null, deliveryId }: NewDelivery,
  command: NewCommand | null,
): Promise<string | null> {
  if (digest !== null) {
    const same = rows
      .selectFrom('deliveries')
      .select('deliveryId')
      .where('digest', '=', digest)
      .where('deliveryId', '<>', deliveryId)
      .where('outcome', 'in', [...settled] as Delivery['outcome'][])
      .limit(1);
    if (await same.executeTakeFirst()) return 'duplicateBody';
  }
  return command && !(await isNewCommand(database, rows, command)) ? 'duplicateCommand' : null;
}

/** Columns of a new delivery. Names from the source are cleaned, because they can contain any character. */
const receivedRow = ({ deliveryId, event, outcome, reason, number, digest = null, ...delivery }: NewDelivery) => ({
  ...{ deliveryId, event, outcome, reason, number, digest },
  action: textOrNull.encode(delivery.action),
  repositoryKey: textOrNull.encode(delivery.repositoryKey),
  sender: textOrNull.encode(delivery.sender),
  tookMs: Math.round(delivery.tookMs),
});

const insertDelivery = prepared(({ now }, rows, slots: ReturnType<typeof receivedRow>) => {
  const { deliveryId, event, action, repositoryKey, number, sender, outcome, reason, tookMs, digest } = slots;
  return rows
    .insertInto('deliveries')
    .values({
      ...{ deliveryId, event, action, repositoryKey, number, sender, outcome, reason, tookMs, digest },
      receivedAt: now,
      redeliveries: 0,
    })
    .onConflict((conflict) =>
      conflict.column('deliveryId').doUpdateSet(({ eb }) => ({ redeliveries: eb('deliveries.redeliveries', '+', 1) })),
    )
    .returning(['redeliveries', 'outcome', 'reason']);
});

/** A command that was not followed, and that the present settings judge otherwise. */
const isRefusedCommand = sql<boolean>`"commands"."status" in ('rejected', 'failed')
  and ("excluded"."status" = 'queued' or "commands"."errorCode" is distinct from "excluded"."errorCode")`;

async function isNewCommand(database: Database, rows: Rows, command: NewCommand): Promise<boolean> {
  const row = commandRow.encode({ ...command, runId: null, createdAt: 0 });
  const { rows: inserted } = await insertCommand(database, rows, row);
  return inserted.length > 0;
}

const insertCommand = prepared(({ now }, rows, slots: ReturnType<typeof commandRow.encode>) => {
  const { commentId, repositoryKey, number, actor, verb, focus, status, errorCode, runId } = slots;
  return rows
    .insertInto('commands')
    .values({ ...{ commentId, repositoryKey, number, actor, verb, focus, status, errorCode, runId }, createdAt: now })
    .onConflict((conflict) =>
      conflict
        .column('commentId')
        .doUpdateSet(({ ref }) => ({
          verb: ref('excluded.verb'),
          focus: ref('excluded.focus'),
          status: ref('excluded.status'),
          errorCode: ref('excluded.errorCode'),
          createdAt: ref('excluded.createdAt'),
        }))
        .where(isRefusedCommand),
    )
    .returning('commentId');
});

async function listed(rows: Rows, { limit, cursor, outcome }: Parameters<ReviewStore['deliveries']>[0]) {
  let query = rows
    .selectFrom('deliveries')
    .selectAll()
    .orderBy('key', 'desc')
    .limit(pageSize(limit) + 1);
  if (outcome !== undefined) query = query.where('outcome', '=', outcome as Delivery['outcome']);
  if (cursor !== undefined) query = query.where('key', '<', positionOf(cursor, ['key']).key);
  return pageOf(await query.execute(), limit, deliveryRow.decode, ({ key }) => [Number(key)]);
}
