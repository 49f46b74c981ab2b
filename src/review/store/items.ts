import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { type Database, locksRows, type Rows } from './database.ts';
import { noItem, noRepository } from './errors.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { lockedRepository } from './repositories.ts';
import { itemRow } from './tables.ts';
import type { ItemActivity, ItemFacts, ReviewStore, StoredItem } from './types.ts';

type Methods = Pick<
  ReviewStore,
  'upsertItem' | 'item' | 'itemByNumber' | 'items' | 'updateItem' | 'itemActivity' | 'dueForAutoReview'
>;

/** Stores pull requests: their facts from the source and the state of their review. */
export function items(database: Database): Methods {
  const one = async (rows: Rows, itemId: string) => {
    const found = await rows.selectFrom('items').selectAll().where('itemId', '=', itemId).executeTakeFirst();
    return found && itemRow.decode(found);
  };
  return {
    upsertItem: (facts, deliveryId) => database.write((rows) => upsert(database, rows, facts, deliveryId)),

    item: (itemId) => database.read((rows) => one(rows, itemId)),

    itemByNumber: (repositoryKey, number) => database.read((rows) => byNumber(rows, repositoryKey, number)),

    items: (filter) => database.read((rows) => listed(rows, filter)),

    updateItem: (itemId, change) =>
      database.statement(async (rows) => {
        const set = itemRow.change(change);
        if (Object.keys(set).length === 0) return;
        const { numUpdatedRows } = await rows
          .updateTable('items')
          .set(set)
          .where('itemId', '=', itemId)
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) throw noItem(itemId);
      }),

    itemActivity: (itemIds) => database.read((rows) => activityOf(rows, itemIds)),

    dueForAutoReview: (limit, after) => database.read((rows) => due(rows, limit, after)),
  };
}

async function byNumber(rows: Rows, repositoryKey: string, number: number): Promise<StoredItem | undefined> {
  const found = await rows
    .selectFrom('items')
    .selectAll()
    .where('repositoryKey', '=', repositoryKey)
    .where('number', '=', number)
    .executeTakeFirst();
  return found && itemRow.decode(found);
}

const newItemState = {
  dispatchedHeadSha: null,
  reviewedHeadSha: null,
  reviewedBaseSha: null,
  automaticReviews: 0,
  isPaused: false,
  summaryCommentId: null,
} as const;

async function upsert(database: Database, rows: Rows, facts: ItemFacts, deliveryId: string | undefined) {
  const inserted = await insert(database, rows, facts, deliveryId);
  if (inserted) return { item: inserted, changed: true, headChanged: true };
  const row = await rows
    .selectFrom('items')
    .selectAll()
    .where('repositoryKey', '=', facts.repositoryKey)
    .where('number', '=', facts.number)
    .$if(locksRows(database), (query) => query.forUpdate())
    .executeTakeFirstOrThrow();
  const { key: _, ...before } = row;
  const news = Object.entries(itemRow.change(facts)).filter(([name, value]) => Reflect.get(before, name) !== value);
  const item = itemRow.decode(row);
  // A slow reader must not overwrite facts that another reader stored since.
  if (news.length === 0 || facts.updatedAt < item.updatedAt) return { item, changed: false, headChanged: false };
  const changed = await rows
    .updateTable('items')
    .set({ ...Object.fromEntries(news), ...causeOf(facts.headSha !== item.headSha, deliveryId) })
    .where('key', '=', row.key)
    .returningAll()
    .executeTakeFirstOrThrow();
  return { item: itemRow.decode(changed), changed: true, headChanged: changed.headSha !== item.headSha };
}

/** A head found by a sync has no delivery; any other change found by a sync leaves the delivery of the head. */
const causeOf = (isNewHead: boolean, deliveryId: string | undefined): Partial<Pick<StoredItem, 'deliveryId'>> =>
  deliveryId !== undefined || isNewHead ? { deliveryId: deliveryId ?? null } : {};

async function insert(
  database: Database,
  rows: Rows,
  facts: ItemFacts,
  deliveryId: string | undefined,
): Promise<StoredItem | undefined> {
  // Most items are known: checking first uses up no value of the key sequence.
  if (await byNumber(rows, facts.repositoryKey, facts.number)) return undefined;
  const repository = await lockedRepository(database, rows, facts.repositoryKey);
  if (!repository) throw noRepository(facts.repositoryKey);
  const item: StoredItem = {
    ...newItemState,
    ...facts,
    deliveryId: deliveryId ?? null,
    itemId: randomUUID(),
    dispatchedHeadSha: isOlder(facts.updatedAt, repository.baselineAt) ? facts.headSha : null,
  };
  const found = await rows
    .insertInto('items')
    .values(itemRow.encode(item))
    .onConflict((conflict) => conflict.columns(['repositoryKey', 'number']).doNothing())
    .returningAll()
    .executeTakeFirst();
  return found && itemRow.decode(found);
}

/** A source reports whole seconds, so an update within the second of the baseline counts as after it. */
const isOlder = (updatedAt: number, baselineAt: number | null): boolean =>
  baselineAt !== null && updatedAt < Math.floor(Number(baselineAt) / 1_000) * 1_000;

async function listed(rows: Rows, filter: Parameters<ReviewStore['items']>[0]) {
  const { repositoryKey, state, q = '', limit, cursor } = filter;
  const after = cursor === undefined ? undefined : positionOf(cursor, ['updatedAt', 'key']);
  let query = rows
    .selectFrom('items')
    .selectAll()
    .orderBy('updatedAt', 'desc')
    .orderBy('key', 'desc')
    .limit(pageSize(limit) + 1);
  if (repositoryKey !== undefined) query = query.where('repositoryKey', '=', repositoryKey);
  if (state !== undefined) query = query.where('state', '=', state as StoredItem['state']);
  for (const each of q.trim().split(/\s+/).filter(Boolean)) query = query.where(matches(each));
  if (after) query = query.where(isBefore(after.updatedAt, after.key));
  const page = await query.execute();
  return pageOf(page, limit, itemRow.decode, (row) => [Number(row.updatedAt), Number(row.key)]);
}

const isBefore = (updatedAt: number, key: number) =>
  sql<boolean>`("updatedAt" < ${updatedAt} or ("updatedAt" = ${updatedAt} and "key" < ${key}))`;

/** Condition for one search term: part of the title, author, branch or repository, or the number. */
function matches(word: string) {
  const part = `%${word.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`;
  const texts = ['title', 'author', 'headRef', 'repositoryKey'].map(
    (name) => sql`lower(${sql.ref(name)}) like ${part} escape '\\'`,
  );
  const number = /^#?(\d{1,15})$/.exec(word)?.[1];
  if (number !== undefined) texts.push(sql`"number" = ${Number(number)}`);
  return sql<boolean>`(${sql.join(texts, sql` or `)})`;
}

async function activityOf(rows: Rows, itemIds: readonly string[]): Promise<ReadonlyMap<string, ItemActivity>> {
  if (itemIds.length === 0) return new Map();
  const [findings, runs] = await Promise.all([
    rows
      .selectFrom('findings')
      .select(({ fn }) => ['itemId', fn.countAll<number>().as('count')])
      .where('itemId', 'in', itemIds)
      .where(isOpenFinding)
      .groupBy('itemId')
      .execute(),
    rows
      .selectFrom('runs')
      .select(['itemId', 'runId', 'phase'])
      .where('itemId', 'in', itemIds)
      .where('phase', 'is not', null)
      .execute(),
  ]);
  const counts = new Map(findings.map(({ itemId, count }) => [itemId, Number(count)]));
  const runOf = (itemId: string, phase: string) =>
    runs.find((run) => run.itemId === itemId && run.phase === phase)?.runId ?? null;
  return new Map(
    itemIds.map((itemId) => [
      itemId,
      {
        openFindings: counts.get(itemId) ?? 0,
        activeRunId: runOf(itemId, 'active'),
        waitingRunId: runOf(itemId, 'waiting'),
      },
    ]),
  );
}

/** Condition for an open finding. Literals instead of parameters, so that the partial index `findingsOpen` is used. */
export const isOpenFinding = sql<boolean>`"isPublished" = 1 and "isResolved" = 0`;

async function due(rows: Rows, limit: number, after: Pick<StoredItem, 'itemId' | 'updatedAt'> | undefined) {
  let query = rows
    .selectFrom('items')
    .selectAll()
    .where(sql<boolean>`"state" = 'open' and ("dispatchedHeadSha" is null or "dispatchedHeadSha" <> "headSha")`)
    .where('repositoryKey', 'in', (all) =>
      all.selectFrom('repositories').select('repositoryKey').where('isEnabled', '=', 1).where('autoReview', '=', 1),
    )
    .orderBy('updatedAt', 'desc')
    .orderBy('key', 'desc')
    .limit(pageSize(limit));
  if (after) {
    const last = await rows.selectFrom('items').select('key').where('itemId', '=', after.itemId).executeTakeFirst();
    query = query.where(isBefore(after.updatedAt, Number(last?.key ?? 0)));
  }
  return (await query.execute()).map(itemRow.decode);
}
