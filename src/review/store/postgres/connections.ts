import { Socket } from 'node:net';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import type { ClientConfig, Pool, PoolClient, QueryResult } from 'pg';
import type { Logger } from '../../../log/index.ts';
import { ReviewStoreError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ConnectionSettings } from './connection-string.ts';
import { postgresError } from './errors.ts';

type Pg = typeof import('pg').default;
const { postgres } = limits;

/** Sockets of all connections of a store. A vanished peer never confirms the end of a connection, so a close destroys them. */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** Adds to `config` a socket that is closed with the others, and the probes of the kernel. */
  configFor(config: ClientConfig): ClientConfig {
    return {
      ...config,
      keepAlive: true,
      keepAliveInitialDelayMillis: postgres.keepAliveMs,
      connectionTimeoutMillis: postgres.connectMs,
      stream: () => this.#add(new Socket()),
    };
  }

  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #add(socket: Socket): Socket {
    this.#open.add(socket);
    return socket.once('close', () => this.#open.delete(socket));
  }
}

interface ConnectionsOptions extends ConnectionSettings {
  readonly sockets: Sockets;
  readonly logger: Logger;
}

/**
 * Pool of connections whose peer may vanish without a sign. Each statement has a deadline in this process; a connection that misses
 * it, or whose server accepts no writes, is destroyed and never used again. Connections that were idle are probed first.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #pool: Pool;
  readonly #known = new WeakMap<PoolClient, Connection>();
  /** Connections made before this time may have lost their peer with another one. */
  #suspectUntil = Number.NEGATIVE_INFINITY;

  constructor(pg: Pg, options: ConnectionsOptions) {
    this.#options = options;
    this.#pool = new pg.Pool({
      ...options.sockets.configFor(options.config),
      max: postgres.connections,
      idleTimeoutMillis: postgres.idleMs,
      maxLifetimeSeconds: postgres.lifetimeMs / 1_000,
    });
    // The query that uses the connection reports the error; an 'error' event without a listener would end the process.
    const broken = ({ message }: Error) => options.logger.debug('Lost a PostgreSQL connection', { error: message });
    this.#pool.on('error', broken);
    this.#pool.on('connect', (client) => client.on('error', broken));
  }

  /** Pool for Kysely. @param deadlineMs - of each statement */
  poolWith(deadlineMs: number): PostgresPool {
    return { connect: () => this.#connect(deadlineMs), end: () => this.close([]), options: {} };
  }

  /** Waits for the work in progress, then ends all connections; after `limits.postgres.closeMs` they are destroyed. */
  async close(working: Iterable<Promise<unknown>>): Promise<void> {
    if (this.#pool.ending) return;
    const force = setTimeout(() => this.#options.sockets.destroyAll(), postgres.closeMs);
    try {
      await Promise.allSettled(working);
      await this.#pool.end();
    } finally {
      clearTimeout(force);
    }
  }

  /** @throws ReviewStoreError an outage */
  async #connect(deadlineMs: number): Promise<PostgresPoolClient> {
    for (;;) {
      const connection = await this.#checkOut();
      if (await this.#isUsable(connection)) return connection.with(deadlineMs);
    }
  }

  async #checkOut(): Promise<Connection> {
    const { setting } = this.#options;
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw postgresError(error, 'connect', setting);
    });
    const connection = this.#known.get(client) ?? new Connection(client, this.#options, () => this.#suspectOthers());
    this.#known.set(client, connection);
    return connection;
  }

  /** Checks a new connection, and probes one that was idle. @returns false when it was destroyed and another one can be tried */
  async #isUsable(connection: Connection): Promise<boolean> {
    const { isNew, madeAt, idleMs } = connection;
    if (!isNew && madeAt < this.#suspectUntil) {
      connection.release(true);
      return false;
    }
    if (!isNew && idleMs < postgres.probeAfterMs) return true;
    try {
      await connection.check();
      return true;
    } catch (error) {
      connection.release(true);
      if (isNew) throw error;
      return false;
    }
  }

  #suspectOthers(): void {
    this.#suspectUntil = performance.now();
  }
}

/** One connection of the pool. */
class Connection {
  readonly #client: PoolClient;
  readonly #settings: ConnectionSettings;
  readonly #onSilence: () => void;
  readonly madeAt = performance.now();
  #answeredAt = 0;
  #isBroken = false;

  /** @param onSilence - called when a statement missed its deadline */
  constructor(client: PoolClient, settings: ConnectionSettings, onSilence: () => void) {
    this.#client = client;
    this.#settings = settings;
    this.#onSilence = onSilence;
  }

  get isNew(): boolean {
    return this.#answeredAt === 0;
  }

  /** Time since the last answer of the server. */
  get idleMs(): number {
    return performance.now() - this.#answeredAt;
  }

  /** Connection for Kysely. */
  with(deadlineMs: number): PostgresPoolClient {
    const query = (text: string, values: readonly unknown[] = []) =>
      this.#query(withTimes(text, this.#settings), values, deadlineMs);
    // Without cursors, which no query uses.
    return {
      query: query as unknown as PostgresPoolClient['query'],
      release: (discard) => this.release(discard === true),
    };
  }

  /**
   * Checks that the server accepts writes; a new connection also gets the time limits of the session. Statements instead of startup
   * parameters, because pgbouncer refuses those.
   * @throws ReviewStoreError
   */
  async check(): Promise<void> {
    const { isNew } = this;
    const { setting, session } = this.#settings;
    const text = `${isNew ? `${session(processIdOf(this.#client))}; ` : ''}${state}`;
    const { rows } = await this.#query(text, [], isNew ? postgres.connectMs : postgres.probeMs, 'connect');
    const { readOnly, encoding } = (rows[0] ?? {}) as Readonly<Record<string, unknown>>;
    if (readOnly !== 'off')
      throw new ReviewStoreError(
        'databaseReadOnly',
        'PostgreSQL: the server accepts no writes (a standby, or read-only)',
        {
          hint: `Name the primary server in ${setting}, not a standby.`,
        },
      );
    if (encoding !== 'UTF8')
      throw new ReviewStoreError(
        'databaseUnsuited',
        `PostgreSQL: the database has the encoding ${encoding}, not UTF8`,
        {
          hint: `Create a database with ENCODING 'UTF8' and name it in ${setting}.`,
        },
      );
  }

  release(discard: boolean): void {
    // pg would wait for the peer to close the connection.
    if (discard || this.#isBroken) this.#client.connection.stream.destroy();
    this.#client.release(discard || this.#isBroken);
  }

  async #query(
    text: string,
    values: readonly unknown[],
    deadlineMs: number,
    during: 'connect' | 'statement' = 'statement',
  ): Promise<QueryResult> {
    const { setting } = this.#settings;
    if (this.#isBroken) throw new ReviewStoreError('databaseUnavailable', 'PostgreSQL: the connection was closed');
    let isSilent = false;
    const deadline = setTimeout(() => {
      isSilent = true;
      this.#isBroken = true;
      this.#onSilence();
      this.#client.connection.stream.destroy();
    }, deadlineMs);
    try {
      const result: QueryResult | QueryResult[] = await this.#client.query(text, [...values]);
      this.#answeredAt = performance.now();
      // Several statements have several results; the last one counts.
      return Array.isArray(result) ? (result.at(-1) as QueryResult) : result;
    } catch (error) {
      const failure = isSilent ? silent(deadlineMs, error) : postgresError(error, during, setting);
      if (failure.code === 'databaseUnavailable' || failure.code === 'databaseReadOnly') this.#isBroken = true;
      else this.#answeredAt = performance.now();
      throw failure;
    } finally {
      clearTimeout(deadline);
    }
  }
}

/** Process id that the server, or a pooler before it, gave the connection; 0 without one. The types of pg leave it out. */
const processIdOf = (client: PoolClient & { readonly processID?: number | null }): number => client.processID ?? 0;

const state = `SELECT current_setting('transaction_read_only') AS "readOnly", current_setting('server_encoding') AS "encoding"`;

/** A transaction sets its own limits, because pgbouncer may give each transaction another session. */
const withTimes = (text: string, { transaction }: ConnectionSettings): string =>
  /^(begin|start transaction)\b/.test(text) ? `${text}; ${transaction}` : text;

const silent = (deadlineMs: number, cause: unknown): ReviewStoreError =>
  new ReviewStoreError(
    'databaseUnavailable',
    `PostgreSQL: no answer within ${deadlineMs / 1_000} s; the connection was closed`,
    { cause },
  );
