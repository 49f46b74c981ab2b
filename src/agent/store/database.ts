import { accessSync, chmodSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { makeDirectory } from '../../lib/index.ts';
import { defaults } from '../../protocol/index.ts';
import { enableWriteAheadLog, loadSqlite } from '../../supervise/index.ts';
import { Checkpoints } from './checkpoints.ts';
import { storageError } from './errors.ts';
import { migrate } from './migrations.ts';
import { addFunctions, type Row, type Rows, Statements } from './rows.ts';
import { checkFiles } from './schema-check.ts';
import { beginShrinkable, canShrink, isEmpty, makeShrinkable } from './shrinking.ts';

export type { Row } from './rows.ts';

/**
 * One SQLite database, its prepared statements, and errors in our terms. Everything that throws, throws StorageError
 * (unless the fault is ours).
 */
export class Database implements Rows {
  readonly file: string;
  /** Whether its file can get smaller: see `vacuum`. */
  readonly canShrink: boolean;
  readonly #sqlite: DatabaseSync;
  readonly #checkpoints: Checkpoints;
  readonly #statements: Statements;
  #isInTransaction = false;
  #fault: unknown;

  /** Opens `file`, makes it if it is not there, and brings its tables up to date. @throws StorageError */
  constructor(file: string) {
    this.file = file;
    try {
      makePrivate(file);
      this.#sqlite = open(file);
      this.canShrink = canShrink(this.#sqlite);
    } catch (error) {
      throw storageError(error, file);
    }
    this.#statements = new Statements(this.#sqlite);
    this.#checkpoints = new Checkpoints(file);
  }

  get isInTransaction(): boolean {
    return this.#isInTransaction;
  }

  /** Runs one statement that writes. Outside of `transaction` it is a commit of its own. */
  run(sql: string, ...values: SQLInputValue[]): { readonly changes: number; readonly lastKey: number } {
    const { changes, lastInsertRowid } = this.#guard(() => this.#statements.of(sql).run(...values));
    this.#checkpoints.wrote(values);
    return { changes: Number(changes), lastKey: Number(lastInsertRowid) };
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#guard(() => this.#statements.of(sql).get(...values));
  }

  all(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    return this.#guard(() => this.#statements.of(sql).all(...values));
  }

  /**
   * Makes all writes of `work` or none. Rethrows an error of `work`. After a failed statement, writes nothing else.
   *
   * @param isFlushed the commit waits until it is on the disk: a power cut loses none of it
   */
  transaction<T>(work: () => T, isFlushed = false): T {
    if (this.#isInTransaction) throw new Error('A transaction cannot begin inside of another');
    if (!isFlushed) return this.#transaction(work);
    this.#guard(() => this.#sqlite.exec('PRAGMA synchronous = FULL'));
    try {
      return this.#transaction(work);
    } finally {
      this.#guard(() => this.#sqlite.exec('PRAGMA synchronous = NORMAL'));
    }
  }

  #transaction<T>(work: () => T): T {
    this.#guard(() => this.#statements.of('BEGIN IMMEDIATE').run());
    this.#isInTransaction = true;
    try {
      const result = work();
      this.#guard(() => this.#statements.of('COMMIT').run());
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    } finally {
      this.#isInTransaction = false;
      this.#fault = undefined;
    }
  }

  /** Runs `work` in a transaction: the open one, or a new `transaction`. */
  together<T>(work: () => T): T {
    return this.#isInTransaction ? work() : this.transaction(work);
  }

  /** Whether a write may have to wait for the disk now. */
  get isCheckpointing(): boolean {
    return this.#checkpoints.isAtWork;
  }

  /** Unused pages of the file. */
  get freePages(): number {
    return Number(this.get('PRAGMA freelist_count')?.['freelist_count']);
  }

  /** Gives at most `pages` of the free ones back to the file system; the file is shorter after the next checkpoint. */
  vacuum(pages: number): void {
    // One row a page: read to its end, else it is one page only.
    this.all(`PRAGMA incremental_vacuum(${pages})`);
    this.#checkpoints.wrotePages(pages);
  }

  /** Moves the log into the database, on the other thread, and empties the log's file. */
  truncateLog(): void {
    this.#checkpoints.truncate();
  }

  /** Moves the log into the database and ends. May be called again. */
  close(): void {
    if (!this.#sqlite.isOpen) return;
    this.#checkpoints.close();
    this.#statements.clear();
    this.#guard(() => this.#sqlite.close());
  }

  /** A full disk makes SQLite end the transaction automatically: later statements would write outside of it. */
  #guard<T>(work: () => T): T {
    if (this.#fault !== undefined) throw this.#fault;
    try {
      return work();
    } catch (error) {
      const failure = storageError(error, this.file);
      if (this.#isInTransaction) this.#fault = failure;
      throw failure;
    }
  }

  #rollBack(): void {
    this.#fault = undefined;
    // Undefined before Node 22.16.
    if (this.#sqlite.isTransaction === false) return;
    this.#guard(() => this.#statements.of('ROLLBACK').run());
  }
}

/**
 * WAL with synchronous=NORMAL: a commit is in the page cache of the kernel, so `kill -9` loses none of it. A power
 * cut may lose the commits since the last checkpoint, but leaves a sound database: FULL would cost a flush for every
 * word of a model. SQLite's notes for undoing one statement go to memory: in a file it doubles the cost of a write.
 *
 * A new file holds nothing that a power cut could take, so it is made without a flush: six flushes took half of the time until
 * an agent server was ready.
 */
function open(file: string): DatabaseSync {
  const sqlite = new (loadSqlite().DatabaseSync)(file, {
    timeout: defaults.agent.storeBusyMs,
    enableForeignKeyConstraints: true,
  });
  try {
    const isNew = isEmpty(sqlite);
    sqlite.exec(`PRAGMA trusted_schema = OFF; PRAGMA synchronous = ${isNew ? 'OFF' : 'NORMAL'}`);
    if (isNew) beginShrinkable(sqlite);
    enableWriteAheadLog(sqlite, defaults.agent.storeBusyMs);
    sqlite.exec(`
      PRAGMA wal_autocheckpoint = ${defaults.agent.inlineCheckpointPages};
      PRAGMA journal_size_limit = ${defaults.agent.storeLogBytes};
    `);
    addFunctions(sqlite);
    migrate(sqlite, file);
    makeShrinkable(sqlite, file);
    sqlite.exec('PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL');
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** Conversations are for their owner only. SQLite gives the files it makes beside the database the permissions of that. */
function makePrivate(file: string): void {
  makeDirectory(dirname(file), 0o700);
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    checkFiles(file);
    for (const each of [file, `${file}-wal`, `${file}-shm`]) tighten(each);
  }
  // SQLite would open it for reading and fail at the first write.
  accessSync(file, constants.R_OK | constants.W_OK);
  accessSync(dirname(file), constants.W_OK);
}

function tighten(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found && process.platform !== 'win32' && (found.mode & 0o077) !== 0) chmodSync(file, 0o600);
}
