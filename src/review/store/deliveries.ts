import type { Delivery } from '../../protocol/index.ts';
import type { Database, Rows } from './database.ts';
import { insertJob } from './jobs.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { commandRow, deliveryRow } from './tables.ts';
import type { NewCommand, NewDelivery, ReviewStore } from './types.ts';
import type { Wakes } from './wakes.ts';

type Methods = Pick<ReviewStore, 'takeDelivery' | 'setDeliveryOutcome' | 'deliveries' | 'command' | 'updateCommand'>;

/** What the forge has told us, and the commands in it. */
export function deliveries(database: Database, wakes: Wakes): Methods {
  return {
    takeDelivery: async (delivery) => {
      const taken = await database.write((rows) => take(database, rows, delivery));
      if (taken === 'new' && delivery.job) wakes.tell('jobs');
      return taken;
    },

    setDeliveryOutcome: (deliveryId, outcome, reason) =>
      database.statement(async (rows) => {
        await rows.updateTable('deliveries').set({ outcome, reason }).where('deliveryId', '=', deliveryId).execute();
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
  const { deliveryId, event, action, repositoryKey, number, sender, outcome, reason, tookMs, job, command } = delivery;
  const { redeliveries } = await rows
    .insertInto('deliveries')
    .values({
      ...{ deliveryId, event, action, repositoryKey, number, sender, outcome, reason },
      receivedAt: database.now,
      tookMs: Math.round(tookMs),
      redeliveries: 0,
    })
    .onConflict((conflict) =>
      conflict.column('deliveryId').doUpdateSet(({ eb }) => ({ redeliveries: eb('deliveries.redeliveries', '+', 1) })),
    )
    .returning('redeliveries')
    .executeTakeFirstOrThrow();
  if (Number(redeliveries) > 0) return 'duplicate';
  if (command && !(await isNewCommand(database, rows, command))) {
    await rows
      .updateTable('deliveries')
      .set({ outcome: 'ignored', reason: 'duplicateCommand' })
      .where('deliveryId', '=', deliveryId)
      .execute();
    return 'duplicate';
  }
  if (job) await insertJob(database, rows, job);
  return 'new';
}

async function isNewCommand(database: Database, rows: Rows, command: NewCommand): Promise<boolean> {
  const row = await rows
    .insertInto('commands')
    .values({ ...commandRow.encode({ ...command, runId: null, createdAt: 0 }), createdAt: database.now })
    .onConflict((conflict) => conflict.column('commentId').doNothing())
    .returning('commentId')
    .executeTakeFirst();
  return row !== undefined;
}

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
