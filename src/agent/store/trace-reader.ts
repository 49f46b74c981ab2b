import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { defaults } from '../../protocol/index.ts';
import { loadSqlite } from '../../supervise/index.ts';
import { StorageError, type TraceReader } from '../thread-store.ts';
import { storageError } from './errors.ts';
import { checkVersion } from './migrations.ts';
import { addFunctions, type Row, type Rows, Statements } from './rows.ts';
import { checkFiles } from './schema-check.ts';
import { TraceQueries } from './trace-queries.ts';

/** A database that is open for reading only. */
export class ReadOnlyDatabase implements Rows {
  readonly file: string;
  readonly #sqlite: DatabaseSync;
  readonly #statements: Statements;

  /**
   * @param busyMs how long another process may hold the database
   * @throws StorageError
   */
  constructor(file: string, busyMs: number = defaults.agent.storeBusyMs) {
    this.file = file;
    this.#sqlite = this.#guard(() => open(file, busyMs));
    this.#statements = new Statements(this.#sqlite);
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#guard(() => this.#statements.of(sql).get(...values));
  }

  all(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    return this.#guard(() => this.#statements.of(sql).all(...values));
  }

  close(): void {
    if (!this.#sqlite.isOpen) return;
    this.#statements.clear();
    this.#sqlite.close();
  }

  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw storageError(error, this.file);
    }
  }
}

/**
 * Opens the traces of `directory` (the state of a workspace, below the home) for reading, whether or not an agent server runs there: its
 * writes are visible to the next query (`since(newestId)`). The database is neither made nor changed; SQLite may put the
 * two files of its log beside it.
 *
 * @throws StorageError failed (it is missing, or another version made it), corrupt, readOnly
 */
export function openTraceReader(directory: string): TraceReader & { close(): void } {
  return new TraceView(new ReadOnlyDatabase(join(directory, 'state.db')));
}

class TraceView extends TraceQueries {
  readonly #database: ReadOnlyDatabase;

  constructor(database: ReadOnlyDatabase) {
    super(database);
    this.#database = database;
  }

  close(): void {
    this.#database.close();
  }
}

function open(file: string, timeout: number): DatabaseSync {
  if (!statSync(file, { throwIfNoEntry: false })) {
    throw new StorageError('failed', `There is no ${file}: no agent server has run in this workspace yet`);
  }
  checkFiles(file);
  const sqlite = new (loadSqlite().DatabaseSync)(file, { readOnly: true, timeout });
  try {
    sqlite.exec('PRAGMA trusted_schema = OFF');
    checkVersion(sqlite, file);
    addFunctions(sqlite);
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}
