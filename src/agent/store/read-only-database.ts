import { statSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { defaults } from '../../protocol/index.ts';
import { loadSqlite } from '../../supervise/index.ts';
import { StorageError } from '../thread-store.ts';
import { storageError } from './errors.ts';
import { checkVersion } from './migrations.ts';
import { addFunctions, type Row, type Rows, Statements } from './rows.ts';
import { checkFiles } from './schema-check.ts';

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
