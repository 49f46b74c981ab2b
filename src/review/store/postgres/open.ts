import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import type { ClientConfig, Pool, PoolConfig } from 'pg';
import { exponentialBackoffMs } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { Database, Rows } from '../database.ts';
import { ReviewStoreError, storeClosed } from '../errors.ts';
import { limits } from '../limits.ts';
import { migrate } from '../migrations.ts';
import type { Tables } from '../tables.ts';
import { type Wake, Wakes } from '../wakes.ts';
import { isRolledBack, postgresError } from './errors.ts';
import { Listener, Notifier, notification } from './listener.ts';

type Pg = typeof import('pg').default;

interface PostgresOptions {
  readonly connectionString: string;
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
  const { default: pg } = await import('pg');
  const config = configOf(pg, options);
  const { postgres } = limits;
  const pool = new pg.Pool({
    ...config,
    statement_timeout: postgres.statementMs,
    idle_in_transaction_session_timeout: postgres.idleInTransactionMs,
    max: postgres.connections,
    idleTimeoutMillis: postgres.idleMs,
  } satisfies PoolConfig);
  // The query that uses the connection reports the error; an 'error' event without a listener would end the process.
  const broken = ({ message }: Error) => options.logger.debug('Lost a PostgreSQL connection', { error: message });
  pool.on('error', broken);
  pool.on('connect', (client) => client.on('error', broken));
  const database = new PostgresDatabase(pool);
  try {
    await database.write(async (rows) => {
      await sql`set local statement_timeout = 0`.execute(rows);
      await database.lock(rows, 'migrations');
      await migrate(rows, 'postgres', 'The PostgreSQL database');
    });
  } catch (error) {
    await database.close();
    throw error;
  }
  const wakes = await listen(pg, { pool, config, database, logger: options.logger });
  return { database, wakes };
}

interface Listening {
  readonly pool: Pool;
  readonly config: ClientConfig;
  readonly database: PostgresDatabase;
  readonly logger: Logger;
}

/** Exchanges hints with other processes; own hints are ignored. */
async function listen(pg: Pg, { pool, config, database, logger }: Listening): Promise<Wakes> {
  const self = randomUUID();
  const notifier = new Notifier(self, logger, (payload) => pool.query(notification(payload)));
  const wakes = new Wakes((what) => notifier.notify(what));
  const listener = new Listener({
    connect: (client) => new pg.Client(client),
    config,
    logger,
    onHint: (payload) => {
      const [sender, ...hints] = payload.split(' ');
      if (sender !== self) for (const hint of hints) wakes.notifyHere(hint as Wake);
    },
    onListening: () => wakes.notifyAllHere(),
  });
  database.onClose(async () => {
    notifier.close();
    await listener.close();
  });
  await listener.start();
  return wakes;
}

function configOf(pg: Pg, { connectionString, owner }: PostgresOptions): ClientConfig {
  const { builtins } = pg.types;
  const config: ClientConfig = {
    connectionString,
    application_name: `oratorio ${owner}`.slice(0, 63),
    connectionTimeoutMillis: limits.postgres.connectMs,
    keepAlive: true,
    // All our numbers are safe integers: milliseconds, keys, counts.
    types: {
      getTypeParser: (type: number, format?: 'text' | 'binary') =>
        type === builtins.INT8 || type === builtins.NUMERIC ? Number : pg.types.getTypeParser(type, format as 'text'),
    },
  };
  try {
    // The constructor parses the string and does not connect.
    new pg.Client(config);
    return config;
  } catch {
    // The error of `pg` is dropped, because it contains the string with the password.
    throw new ReviewStoreError(
      'invalidConnectionString',
      'Invalid connection string of the database: expected postgres://user:password@host:5432/database',
    );
  }
}

class PostgresDatabase implements Database {
  readonly kind = 'postgres';
  /** Not clock_timestamp(): that differs for every row, so no index can be used with it. */
  readonly now = sql<number>`(extract(epoch from statement_timestamp()) * 1000)::bigint`;
  readonly #kysely: Kysely<Tables>;
  readonly #closing: (() => Promise<void>)[] = [];
  #isClosed = false;

  constructor(pool: Pool) {
    this.#kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  }

  read<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#again(() => work(this.#kysely));
  }

  snapshot<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const begin = () => this.#kysely.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
    return this.#again(() => begin().execute(work));
  }

  /** `read committed`, whatever the server's default: after waiting for a lock, a transaction must see the writes of its holder. */
  write<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    return this.#again((commits) =>
      this.#kysely
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

  onClose(work: () => Promise<void>): void {
    this.#closing.push(work);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#closing.map((work) => work()));
    await this.#kysely.destroy();
  }

  /** Retries transactions that have certainly not been committed, after a broken connection, a deadlock or a restart. */
  async #again<T>(work: (commits: () => void) => Promise<T>): Promise<T> {
    for (let left: number = limits.retries; ; left -= 1) {
      if (this.#isClosed) throw storeClosed();
      let mayBeCommitted = false;
      try {
        return await work(() => {
          mayBeCommitted = true;
        });
      } catch (error) {
        const failure = postgresError(error);
        const isUnreachable = failure instanceof ReviewStoreError && failure.code === 'databaseUnavailable';
        if (left === 0 || !(isRolledBack(error) || (isUnreachable && !mayBeCommitted))) throw failure;
        await pause(exponentialBackoffMs(limits.retries - left, limits.retryBackoff, Math.random()));
      }
    }
  }
}
