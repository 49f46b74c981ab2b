import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import { enableWriteAheadLog, loadSqlite } from '../../../supervise/index.ts';
import type { Database, Rows } from '../database.ts';
import { storeClosed } from '../errors.ts';
import { limits } from '../limits.ts';
import { migrate } from '../migrations.ts';
import type { Tables } from '../tables.ts';
import { nodeSqliteDialect } from './dialect.ts';
import { sqliteError } from './errors.ts';

/**
 * Opens or creates `file` (0600, its directory 0700) and migrates its schema.
 * @throws ReviewStoreError
 */
export async function openSqlite(file: string): Promise<Database> {
  const connections: DatabaseSync[] = [];
  const close = () => {
    for (const each of connections.toReversed()) if (each.isOpen) each.close();
  };
  try {
    makePrivate(file);
    const connect = (writes: boolean) => {
      const sqlite = open(file, writes);
      connections.push(sqlite);
      return new Kysely<Tables>({ dialect: nodeSqliteDialect(sqlite, { file, writes }) });
    };
    const writer = connect(true);
    await writer.transaction().execute((rows) => migrate(rows, 'sqlite', file));
    return new SqliteDatabase({ writer, reader: connect(false), close });
  } catch (error) {
    close();
    throw sqliteError(error, file);
  }
}

interface Connections {
  readonly writer: Kysely<Tables>;
  readonly reader: Kysely<Tables>;
  readonly close: () => void;
}

class SqliteDatabase implements Database {
  readonly kind = 'sqlite';
  readonly now = sql<number>`cast(unixepoch('subsec') * 1000 as integer)`;
  readonly #connections: Connections;
  #isClosed = false;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async read<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw storeClosed();
    return work(this.#connections.reader);
  }

  async write<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw storeClosed();
    return this.#connections.writer.transaction().execute(work);
  }

  readonly snapshot = this.write;
  readonly statement = this.write;

  /** Nothing to do: SQLite has one writer at a time. */
  async lock(): Promise<void> {}

  /** Closes the database after the transactions that have begun. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#connections.writer.destroy();
    this.#connections.close();
  }
}

/**
 * Opens a connection with WAL and synchronous=FULL, so that an accepted delivery survives a power cut. GroupCommit flushes once per
 * turn of the event loop.
 */
function open(file: string, writes: boolean): DatabaseSync {
  const sqlite = new (loadSqlite().DatabaseSync)(file, { timeout: 0, enableForeignKeyConstraints: true });
  try {
    const rules = `PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;
      PRAGMA journal_size_limit = ${limits.sqlite.logBytes};`;
    // Only while opening: two connections that open a new file at once wait for each other.
    sqlite.exec(`PRAGMA busy_timeout = ${limits.sqlite.busyMs}`);
    enableWriteAheadLog(sqlite, limits.sqlite.busyMs);
    sqlite.exec(rules);
    sqlite.exec(writes ? 'PRAGMA busy_timeout = 0' : 'PRAGMA query_only = ON');
    // SQLite's own lower() converts ASCII letters only.
    sqlite.function('lower', { deterministic: true }, (text) => (text === null ? null : String(text).toLowerCase()));
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** SQLite creates the files beside the database with the permissions of the database. */
function makePrivate(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    for (const each of [file, `${file}-wal`, `${file}-shm`]) tighten(each);
  }
}

function tighten(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found && process.platform !== 'win32' && (found.mode & 0o077) !== 0) chmodSync(file, 0o600);
}
