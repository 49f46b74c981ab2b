import { type Database, locksRows, type Rows } from './database.ts';
import { ReviewStoreError } from './errors.ts';
import { isOpenFinding } from './items.ts';
import { isHeldRun, lost } from './leases.ts';
import { pageOf, pageSize, positionOf } from './paging.ts';
import { prepared } from './prepared.ts';
import { draftRow, findingRow } from './tables.ts';
import type { ReviewStore, StoredDraft, StoredFinding } from './types.ts';

type Methods = Pick<
  ReviewStore,
  | 'putDraft'
  | 'draft'
  | 'draftOfRun'
  | 'draftStatus'
  | 'drafts'
  | 'updateDraft'
  | 'updateFinding'
  | 'finding'
  | 'openFindings'
>;
type NewDraft = Parameters<ReviewStore['putDraft']>[1];

/** Stores drafts and their findings, before and after publication. */
export function drafts(database: Database): Methods {
  const by = (column: 'draftId' | 'runId', id: string) =>
    database.snapshot(async (rows) => {
      const row = await rows.selectFrom('drafts').selectAll().where(column, '=', id).executeTakeFirst();
      if (!row) return undefined;
      const [draft] = await withFindings(rows, [draftRow.decode(row)]);
      return draft;
    });
  return {
    putDraft: (lease, draft) =>
      database.write(async (rows) => {
        const held = await rows
          .updateTable('runs')
          .set({ draftId: draft.draftId })
          .where(isHeldRun(draft.runId, lease))
          .executeTakeFirstOrThrow();
        if (held.numUpdatedRows === 0n) throw lost(draft.runId);
        return put(database, rows, draft);
      }),

    draft: (draftId) => by('draftId', draftId),

    draftOfRun: (runId) => by('runId', runId),

    draftStatus: (runId) =>
      database.read(async (rows) => {
        const { rows: found } = await statusOf(database, rows, { runId });
        return found[0]?.status as StoredDraft['status'] | undefined;
      }),

    drafts: (filter) => database.snapshot((rows) => listed(rows, filter)),

    updateDraft: (draftId, version, change) =>
      database.write(async (rows) => {
        const row = await rows
          .updateTable('drafts')
          .set({ ...draftRow.change(change), version: version + 1 })
          .where('draftId', '=', draftId)
          .where('version', '=', version)
          .returningAll()
          .executeTakeFirst();
        if (!row) return undefined;
        const [draft] = await withFindings(rows, [draftRow.decode(row)]);
        return draft;
      }),

    updateFinding: (findingId, change, draftVersion) =>
      database.write((rows) => updateFinding(rows, findingId, change, draftVersion)),

    finding: (findingId) =>
      database.read(async (rows) => {
        const row = await rows.selectFrom('findings').selectAll().where('findingId', '=', findingId).executeTakeFirst();
        return row && findingRow.decode(row);
      }),

    openFindings: (itemId) =>
      database.read(async (rows) => {
        const found = await rows
          .selectFrom('findings')
          .selectAll()
          .where('itemId', '=', itemId)
          .where(isOpenFinding)
          .orderBy('key')
          .execute();
        return found.map(findingRow.decode);
      }),
  };
}

const statusOf = prepared((_, rows, { runId }: { readonly runId: string }) =>
  rows.selectFrom('drafts').select('status').where('runId', '=', runId),
);

/** Fields that users edit before publication. The other fields record the result of the publication. */
const edited: ReadonlySet<string> = new Set([
  'severity',
  'kind',
  'title',
  'body',
  'oldText',
  'newText',
  'status',
] satisfies (keyof StoredFinding)[]);

/** Locks the draft before the finding, in the same order as `put`, so that the two cannot deadlock. */
async function updateFinding(
  rows: Rows,
  findingId: string,
  change: Partial<StoredFinding>,
  draftVersion: number | undefined,
): Promise<StoredFinding | undefined> {
  if (draftVersion !== undefined || Object.keys(change).some((name) => edited.has(name))) {
    let draft = rows
      .updateTable('drafts')
      .set(({ eb }) => ({ version: eb('version', '+', 1) }))
      .where('draftId', '=', (all) => all.selectFrom('findings').select('draftId').where('findingId', '=', findingId));
    if (draftVersion !== undefined) draft = draft.where('version', '=', draftVersion);
    const { numUpdatedRows } = await draft.executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return undefined;
  }
  const row = await rows
    .updateTable('findings')
    .set({ ...findingRow.change(change), findingId })
    .where('findingId', '=', findingId)
    .returningAll()
    .executeTakeFirst();
  return row && findingRow.decode(row);
}

async function put(database: Database, rows: Rows, { findings, ...draft }: NewDraft): Promise<StoredDraft> {
  const before = await rows
    .selectFrom('drafts')
    .select(['draftId', 'status', 'version'])
    .where('runId', '=', draft.runId)
    .$if(locksRows(database), (query) => query.forUpdate())
    .executeTakeFirst();
  if (before && before.status !== 'draft')
    throw new ReviewStoreError('conflict', `The draft of run ${draft.runId} is ${before.status}: it is not replaced`);
  if (before) await rows.deleteFrom('drafts').where('draftId', '=', before.draftId).execute();
  const version = Number(before?.version ?? 0) + 1;
  const stored = { ...draft, version, publishedAt: null, url: null };
  await rows.insertInto('drafts').values(draftRow.encode(stored)).execute();
  for (const finding of findings) await rows.insertInto('findings').values(findingRow.encode(finding)).execute();
  return { ...stored, findings };
}

async function withFindings(rows: Rows, drafts: readonly Omit<StoredDraft, 'findings'>[]): Promise<StoredDraft[]> {
  if (drafts.length === 0) return [];
  const found = await rows
    .selectFrom('findings')
    .selectAll()
    .where(
      'draftId',
      'in',
      drafts.map(({ draftId }) => draftId),
    )
    .orderBy('key')
    .execute();
  const findings = Map.groupBy(found.map(findingRow.decode), ({ draftId }) => draftId);
  return drafts.map((draft) => ({ ...draft, findings: findings.get(draft.draftId) ?? [] }));
}

async function listed(rows: Rows, { itemId, status, limit, cursor }: Parameters<ReviewStore['drafts']>[0]) {
  let query = rows
    .selectFrom('drafts')
    .selectAll()
    .orderBy('key', 'desc')
    .limit(pageSize(limit) + 1);
  if (itemId !== undefined) query = query.where('itemId', '=', itemId);
  if (status !== undefined) query = query.where('status', '=', status as StoredDraft['status']);
  if (cursor !== undefined) query = query.where('key', '<', positionOf(cursor, ['key']).key);
  const page = pageOf(await query.execute(), limit, draftRow.decode, ({ key }) => [Number(key)]);
  return { ...page, rows: await withFindings(rows, page.rows) };
}
