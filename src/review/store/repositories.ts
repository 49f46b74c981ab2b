import { sql } from 'kysely';
import { type Database, locksRows, type Rows } from './database.ts';
import { noRepository } from './errors.ts';
import { repositoryRow } from './tables.ts';
import type { ReviewStore, StoredRepository } from './types.ts';

type Wanted = Parameters<ReviewStore['syncRepositories']>[0][number];

/** Stores the configured repositories and their state. */
export function repositories(
  database: Database,
): Pick<ReviewStore, 'syncRepositories' | 'repositories' | 'repository' | 'updateRepository' | 'openItemCounts'> {
  return {
    syncRepositories: (wanted) =>
      database.write(async (rows) => {
        await database.lock(rows, 'repositories');
        const keys = wanted.map(({ repositoryKey }) => repositoryKey);
        await rows
          .updateTable('repositories')
          .set({ isEnabled: 0 })
          .where('isEnabled', '=', 1)
          .$if(keys.length > 0, (query) => query.where('repositoryKey', 'not in', keys))
          .execute();
        for (const each of wanted) await sync(database, rows, each);
      }),

    repositories: () =>
      database.read(async (rows) => {
        const found = await rows.selectFrom('repositories').selectAll().orderBy('repositoryKey').execute();
        return found.map(repositoryRow.decode);
      }),

    repository: (repositoryKey) => database.read((rows) => repositoryOf(rows, repositoryKey)),

    updateRepository: (repositoryKey, change) =>
      database.statement(async (rows) => {
        const set = repositoryRow.change(change);
        if (Object.keys(set).length === 0) return;
        const { numUpdatedRows } = await rows
          .updateTable('repositories')
          .set(set)
          .where('repositoryKey', '=', repositoryKey)
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) throw noRepository(repositoryKey);
      }),

    openItemCounts: () =>
      database.read(async (rows) => {
        const found = await rows
          .selectFrom('items')
          .select(({ fn }) => ['repositoryKey', fn.countAll<number>().as('count')])
          .where('state', '=', 'open')
          .groupBy('repositoryKey')
          .execute();
        return new Map(found.map(({ repositoryKey, count }) => [repositoryKey, Number(count)]));
      }),
  };
}

export async function repositoryOf(rows: Rows, repositoryKey: string): Promise<StoredRepository | undefined> {
  const found = await rows
    .selectFrom('repositories')
    .selectAll()
    .where('repositoryKey', '=', repositoryKey)
    .executeTakeFirst();
  return found && repositoryRow.decode(found);
}

async function sync(database: Database, rows: Rows, wanted: Wanted): Promise<void> {
  const { repositoryKey, instance, owner, name, autoReview } = wanted;
  const known = await repositoryOf(rows, repositoryKey);
  const isSwitchedOn = autoReview && !(known?.autoReview === true && known.isEnabled);
  const set = {
    ...repositoryRow.change({ instance, owner, name, autoReview, isEnabled: true }),
    ...(!autoReview && { baselineAt: null }),
    ...(isSwitchedOn && { baselineAt: database.now }),
  };
  if (known) await rows.updateTable('repositories').set(set).where('repositoryKey', '=', repositoryKey).execute();
  else
    await rows
      .insertInto('repositories')
      .values({ repositoryKey, instance, owner, name, isEnabled: 1, autoReview: autoReview ? 1 : 0, ...set })
      .execute();
  if (isSwitchedOn && known) await setBaseline(rows, repositoryKey);
}

/** Marks present heads as dispatched, because enabling Auto Review must not review them. */
const setBaseline = (rows: Rows, repositoryKey: string) =>
  rows
    .updateTable('items')
    .set({ dispatchedHeadSha: sql.ref('headSha') })
    .where('repositoryKey', '=', repositoryKey)
    .execute();

export const lockedRepository = (database: Database, rows: Rows, repositoryKey: string) =>
  rows
    .selectFrom('repositories')
    .select(['repositoryKey', 'baselineAt'])
    .where('repositoryKey', '=', repositoryKey)
    .$if(locksRows(database), (query) => query.forShare())
    .executeTakeFirst();
