import { join } from 'node:path';
import type { Logger } from '../../log/index.ts';
import { backlog } from './backlog.ts';
import type { Database } from './database.ts';
import { deliveries } from './deliveries.ts';
import { drafts } from './drafts.ts';
import { events } from './events.ts';
import { items } from './items.ts';
import { jobs } from './jobs.ts';
import { endLeases } from './leases.ts';
import { withOutageLog } from './outage.ts';
import { openPostgres } from './postgres/open.ts';
import { prune } from './prune.ts';
import { repositories } from './repositories.ts';
import { runs } from './runs.ts';
import { singles } from './singles.ts';
import { openSqlite } from './sqlite/open.ts';
import type { ReviewStore } from './types.ts';
import { Wakes } from './wakes.ts';
import { writes } from './writes.ts';

export interface ReviewStoreOptions {
  /** `postgres://…`; absent or empty: SQLite in `directory`. */
  readonly connectionString?: string;
  /** `postgres://…` for notifications; absent or empty: `connectionString`. */
  readonly listenUrl?: string;
  /** Directory of `backend.db`. */
  readonly directory?: string;
  /** Name of this process among those that share the database. */
  readonly owner: string;
  /** SQLite: no other process has the database open, so all leases of earlier processes are ended. */
  readonly isAlone?: boolean;
  readonly logger: Logger;
}

/**
 * Opens or creates the database of the backend and migrates its schema.
 * @throws ReviewStoreError, also when a newer version created the schema
 */
export async function openReviewStore(options: ReviewStoreOptions): Promise<ReviewStore> {
  const { connectionString, listenUrl = '', directory, owner, isAlone = false, logger } = options;
  if (connectionString) {
    const { database, wakes } = await openPostgres({ connectionString, listenUrl, owner, logger });
    return storeOn(withOutageLog(database, logger), wakes);
  }
  if (directory === undefined) throw new TypeError('openReviewStore needs a directory or a connection string');
  const database = await openSqlite(join(directory, 'backend.db'));
  if (isAlone) await endLeases(database);
  return storeOn(withOutageLog(database, logger), new Wakes());
}

function storeOn(database: Database, wakes: Wakes): ReviewStore {
  return {
    kind: database.kind,
    ...repositories(database),
    ...items(database),
    ...runs(database, wakes),
    ...drafts(database),
    ...deliveries(database, wakes),
    ...jobs(database, wakes),
    ...backlog(database),
    ...writes(database, wakes),
    ...singles(database),
    ...events(database, wakes),
    onWake: (listener) => wakes.on(listener),
    prune: (before) => prune(database, before),
    close: async () => {
      wakes.close();
      await database.close();
    },
  };
}
