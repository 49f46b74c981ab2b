import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import type { ClientConfig } from 'pg';
import { exponentialBackoffMs } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { Database, Rows } from '../database.ts';
import { ReviewStoreError, storeClosed } from '../errors.ts';
import { limits } from '../limits.ts';
import { migrate } from '../migrations.ts';
import type { Tables } from '../tables.ts';
import { type Wake, Wakes } from '../wakes.ts';
import { type ConnectionSettings, parseConnectionString } from './connection-string.ts';
import { Connections, Sockets } from './connections.ts';
import { isRolledBack } from './errors.ts';
import { Listener, Notifier, notification } from './listener.ts';

type Pg = typeof import('pg').default;

interface PostgresOptions {
  readonly connectionString: string;
  /** Connection string for notifications, past a pooler that does not forward them; absent or empty: `connectionString`. */
  readonly listenUrl?: string;
  /** Shown by PostgreSQL as application name. */
  readonly owner: string;
  readonly logger: Logger;
}

/**
 * Connects, migrates the schema and starts to listen.
 * @throws ReviewStoreError invalidConnectionString (without the string), databaseUnavailable, databaseNewer, …
 */
export async function openPostgres(
  options: PostgresOptions,
): Promise<{ readonly database: Database; readonly wakes: Wakes }> {
  const { connectionString, listenUrl = '', logger } = options;
  const { default: pg } = await import('pg');
  const settings = parseConnectionString(pg, connectionString, 'Storage.ConnectionString');
  const listening = listenUrl === '' ? settings : parseConnectionString(pg, listenUrl, 'Database.ListenUrl');
  const common = commonConfig(pg, options.owner);
  const sockets = new Sockets();
  const connections = new Connections(pg, {
    ...settings,
    config: { ...settings.config, ...common },
    ...{ sockets, logger },
  });
  const database = new PostgresDatabase(connections, settings);
  try {
    await database.migrate();
  } catch (error) {
    await database.close();
    throw error;
  }
  const wakes = await listen(pg, {
    ...{ sockets, database, logger },
    settings: { ...listening, config: { ...listening.config, ...common } },
  });
  return { database, wakes };
}

interface Listening {
  readonly settings: ConnectionSettings;
  readonly sockets: Sockets;
  readonly database: PostgresDatabase;
  readonly logger: Logger;
}

/** Exchanges hints with other processes; own hints are ignored. */
async function listen(pg: Pg, { settings, sockets, database, logger }: Listening): Promise<Wakes> {
  const self = randomUUID();
  const notifier = new Notifier(self, logger, (payload) => database.notify(payload));
  const wakes = new Wakes((what) => notifier.notify(what));
  const listener = new Listener({
    connect: () => new pg.Client(sockets.configFor(settings.config)),
    logger,
    onHint: (payload) => {
      const [sender, ...hints] = payload.split(' ');
      if (sender !== self) for (const hint of hints) wakes.notifyHere(hint as Wake);
    },
    onListening: () => wakes.notifyAllHere(),
  });
  database.onClose(() => {
    notifier.close();
    listener.close();
  });
  await listener.start();
  return wakes;
}

function commonConfig(pg: Pg, owner: string): ClientConfig {
  const { builtins } = pg.types;
  return {
    application_name: `oratorio ${owner}`.slice(0, 63),
    // All our numbers are safe integers: milliseconds, keys, counts.
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === builtins.INT8 || type === builtins.NUMERIC ? Number : pg.types.getTypeParser(type, format as 'text'),
    },
  };
}

class PostgresDatabase implements Database {
  readonly kind = 'postgres';
  /** Not clock_timestamp(): that differs for every row, so no index can be used with it. */
  readonly now = sql<number>`(extract(epoch from statement_timestamp()) * 1000)::bigint`;
  readonly #connections: Connections;
  readonly #kysely: Kysely<Tables>;
  readonly #closing: (() => void)[] = [];
  readonly #working = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(connections: Connections, { deadlineMs }: Pick<ConnectionSettings, 'deadlineMs'>) {
    this.#connections = connections;
    this.#kysely = kyselyOn(connections, deadlineMs);
  }

  /** Updates the schema, one process at a time. Its statements may take long. */
  async migrate(): Promise<void> {
    const kysely = kyselyOn(this.#connections, limits.postgres.migrationMs);
    await this.#writeOn(kysely, async (rows) => {
      await sql`set local statement_timeout = 0`.execute(rows);
      await this.lock(rows, 'migrations');
      await migrate(rows, 'postgres', 'The PostgreSQL database');
    });
  }

  /** Sends a hint to other processes. */
  async notify(payload: string): Promise<void> {
    await notification(payload).execute(this.#kysely);
  }

  read<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#again(() => work(this.#kysely));
  }

  snapshot<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const begin = () => this.#kysely.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
    return this.#again(() => begin().execute(work));
  }

  /** `read committed`, for any default of the server: after waiting for a lock, a transaction must see the writes of its holder. */
  write<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#writeOn(this.#kysely, work);
  }

  #writeOn<T>(kysely: Kysely<Tables>, work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#again((commits) =>
      kysely
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (rows) => {
          const result = await work(rows);
          commits();
          return result;
        }),
    );
  }

  statement<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#again((commits) =>
      this.#kysely.connection().execute((rows) => {
        commits();
        return work(rows);
      }),
    );
  }

  async lock(rows: Rows, name: string): Promise<void> {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`oratorio ${name}`}, 0))`.execute(rows);
  }

  onClose(work: () => void): void {
    this.#closing.push(work);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const work of this.#closing) work();
    await this.#connections.close(this.#working);
  }

  #again<T>(work: (commits: () => void) => Promise<T>): Promise<T> {
    const working = this.#untilDone(work);
    this.#working.add(working);
    return working.finally(() => this.#working.delete(working));
  }

  /** Retries transactions that have certainly not been committed, after a broken connection, a deadlock or a restart. */
  async #untilDone<T>(work: (commits: () => void) => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + limits.retryMs;
    for (let left: number = limits.retries; ; left -= 1) {
      if (this.#isClosed) throw storeClosed();
      let mayBeCommitted = false;
      try {
        return await work(() => {
          mayBeCommitted = true;
        });
      } catch (error) {
        if (this.#isClosed) throw storeClosed();
        const canRetry = left > 0 && performance.now() < giveUpAt;
        if (!canRetry || !(error instanceof ReviewStoreError) || !isRepeatable(error, mayBeCommitted)) throw error;
        await pause(exponentialBackoffMs(limits.retries - left, limits.retryBackoff, Math.random()));
      }
    }
  }
}

const kyselyOn = (connections: Connections, deadlineMs: number): Kysely<Tables> =>
  new Kysely<Tables>({ dialect: new PostgresDialect({ pool: connections.poolWith(deadlineMs) }) });

/** A server that accepts no writes has committed none. */
function isRepeatable(error: ReviewStoreError, mayBeCommitted: boolean): boolean {
  if (error.code === 'databaseUnavailable') return !mayBeCommitted;
  return error.code === 'databaseReadOnly' || isRolledBack(error);
}
