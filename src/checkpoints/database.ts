import { chmodSync, existsSync } from 'node:fs';
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { enableWriteAheadLog, loadSqlite } from '../supervise/index.ts';
import { CheckpointError, explained } from './errors.ts';

/** Version 1 has no groups of small contents, version 2 leaves out the repositories in directories. */
const version = 3;
const busyMs = 5_000;
/** Pages of 4 KiB. */
const logPages = 16_384;
const cacheKiB = 4_096;
/** Cache for a transaction that changes thousands of rows: pages that do not fit are written more than once. */
const largeCacheKiB = 65_536;

/**
 * `entries`: state of a path from one mark (`fromSeq`) until another (`toSeq`; null: still). A turn writes only its changes, and
 * the state at any mark is one query. `blobs.refs` counts entries, marks (their state of git) and lists of pieces that need the
 * content.
 */
const schema = `
  CREATE TABLE marks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    edge TEXT NOT NULL,
    -- JSON: owners of the changes since the mark before.
    running TEXT NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    -- JSON: names of contents, the state of the repositories first; an earlier version has the state itself. Null without git.
    git TEXT
  ) STRICT;
  CREATE TABLE turns (
    thread TEXT NOT NULL,
    turn TEXT NOT NULL,
    startSeq INTEGER NOT NULL,
    endSeq INTEGER,
    crashed INTEGER NOT NULL DEFAULT 0,
    -- Restore that took the turn back.
    undoneBy TEXT,
    PRIMARY KEY (thread, turn)
  ) STRICT;
  CREATE TABLE entries (
    path TEXT NOT NULL,
    fromSeq INTEGER NOT NULL,
    toSeq INTEGER,
    kind TEXT NOT NULL,
    mode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    hash TEXT,
    target TEXT,
    mtime REAL NOT NULL,
    ctime REAL,
    ino INTEGER NOT NULL,
    PRIMARY KEY (path, fromSeq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE packs (
    number INTEGER PRIMARY KEY,
    length INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    pack INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    size INTEGER NOT NULL,
    -- raw, zstd, list: hashes of pieces, or group:LENGTH:AT: a small content, size bytes from AT on of a group, whose LENGTH
    -- bytes of the pack begin at start. Its own length is its share of them.
    codec TEXT NOT NULL,
    refs INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE pieces (
    list TEXT NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (list, number)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER entryAdded AFTER INSERT ON entries WHEN new.hash IS NOT NULL BEGIN
    UPDATE blobs SET refs = refs + 1 WHERE hash = new.hash;
  END;
  CREATE TRIGGER entryRemoved AFTER DELETE ON entries WHEN old.hash IS NOT NULL BEGIN
    UPDATE blobs SET refs = refs - 1 WHERE hash = old.hash;
  END;
  CREATE TRIGGER pieceAdded AFTER INSERT ON pieces BEGIN
    UPDATE blobs SET refs = refs + 1 WHERE hash = new.hash;
  END;
  CREATE TRIGGER pieceRemoved AFTER DELETE ON pieces BEGIN
    UPDATE blobs SET refs = refs - 1 WHERE hash = old.hash;
  END;
  CREATE TABLE restores (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    thread TEXT NOT NULL,
    state TEXT NOT NULL,
    beforeSeq INTEGER NOT NULL,
    -- JSON: operations, turns that are taken back, request.
    plan TEXT NOT NULL,
    -- JSON of a restore that a crash interrupted: it was completed by the next start.
    recovered INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  PRAGMA user_version = ${version};
`;

/** Makes the next scan read directories again, because their `.git` counts now. */
const upgrade = `
  UPDATE entries SET mtime = -1 WHERE kind = 'directory' AND toSeq IS NULL;
  PRAGMA user_version = ${version};
`;

/** Tables of later versions. */
const laterTables = `
  CREATE TABLE IF NOT EXISTS copies (
    target TEXT PRIMARY KEY,
    dev INTEGER NOT NULL,
    ino INTEGER NOT NULL
  ) STRICT;
  -- State of this tree from which a fork was laid out.
  CREATE TABLE IF NOT EXISTS forks (
    target TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
  ) STRICT;
  CREATE TRIGGER IF NOT EXISTS markAdded AFTER INSERT ON marks WHEN json_extract(new.git, '$.index') IS NOT NULL BEGIN
    UPDATE blobs SET refs = refs + 1 WHERE hash = json_extract(new.git, '$.index');
  END;
  CREATE TRIGGER IF NOT EXISTS repositoriesAdded AFTER INSERT ON marks WHEN json_type(new.git, '$.contents') = 'array' BEGIN
    UPDATE blobs SET refs = refs + 1 WHERE hash IN (SELECT value FROM json_each(new.git, '$.contents'));
  END;
  CREATE TRIGGER IF NOT EXISTS repositoriesRemoved AFTER DELETE ON marks WHEN json_type(old.git, '$.contents') = 'array' BEGIN
    UPDATE blobs SET refs = refs - 1 WHERE hash IN (SELECT value FROM json_each(old.git, '$.contents'));
  END;
  CREATE TRIGGER IF NOT EXISTS markRemoved AFTER DELETE ON marks WHEN json_extract(old.git, '$.index') IS NOT NULL BEGIN
    UPDATE blobs SET refs = refs - 1 WHERE hash = json_extract(old.git, '$.index');
  END;
`;

/**
 * Indexes, made and removed whenever a store is opened. Contents have none: keeping one costs most of a first checkpoint, and a
 * table of contents is read whole only when something is deleted.
 */
const indexes = `
  DROP INDEX IF EXISTS blobsByPack;
  DROP INDEX IF EXISTS blobsUnused;
  CREATE INDEX IF NOT EXISTS entriesByStart ON entries (fromSeq);
  CREATE INDEX IF NOT EXISTS entriesByEnd ON entries (toSeq) WHERE toSeq IS NOT NULL;
  CREATE INDEX IF NOT EXISTS entriesSkipped ON entries (path, fromSeq, toSeq, size, target) WHERE kind = 'skipped';
`;

/** Read-only URI of a closed database. Creates no log beside it, which would look like the log of a killed process. */
function unchanged(file: string): URL {
  const address = pathToFileURL(file);
  address.searchParams.set('immutable', '1');
  return address;
}

export type Row = Readonly<Record<string, unknown>>;

/** The database of one tree's checkpoints, with its prepared statements. */
export class CheckpointDatabase {
  readonly #sqlite: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  readonly #file: string;

  /**
   * @param file path in a directory that only this user can access
   * @param readOnly opens an existing store without changing it
   * @throws the error of SQLite, CheckpointError for a newer version or damage
   */
  constructor(file: string, { readOnly = false } = {}) {
    this.#file = file;
    const place = readOnly && !existsSync(`${file}-wal`) ? unchanged(file) : file;
    this.#sqlite = new (loadSqlite().DatabaseSync)(place, { timeout: busyMs, readOnly });
    try {
      this.#sqlite.exec('PRAGMA trusted_schema = OFF');
      if (readOnly) {
        this.#checkVersion();
        return;
      }
      chmodSync(file, 0o600);
      enableWriteAheadLog(this.#sqlite, busyMs);
      // Moving the log into the database flushes the disk: rarely, and when the file is closed.
      this.#sqlite.exec(
        `PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = ${logPages}; PRAGMA cache_size = -${cacheKiB}`,
      );
      const found = this.#checkVersion();
      if (found === 0) this.transaction(() => this.#sqlite.exec(schema));
      // A program that knows no groups must not take groups for damaged contents.
      if (found === 1 || found === 2) this.transaction(() => this.#sqlite.exec(upgrade));
      this.#sqlite.exec(`${laterTables}${indexes}`);
    } catch (error) {
      this.#sqlite.close();
      throw explained(error, file);
    }
  }

  /** Version of the file; 0 for a new file. @throws CheckpointError for a newer version */
  #checkVersion(): number {
    const found = Number(this.get('PRAGMA user_version')?.['user_version']);
    if (found > version) throw new CheckpointError('the checkpoints were made by a newer version');
    return found;
  }

  run(sql: string, ...values: SQLInputValue[]): { readonly changes: number; readonly lastKey: number } {
    const { changes, lastInsertRowid } = this.#explain(() => this.#statement(sql).run(...values));
    return { changes: Number(changes), lastKey: Number(lastInsertRowid) };
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#explain(() => this.#statement(sql).get(...values));
  }

  all(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    return this.#explain(() => this.#statement(sql).all(...values));
  }

  iterate(sql: string, ...values: SQLInputValue[]): Iterable<Row> {
    return this.#statement(sql).iterate(...values);
  }

  #explain<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw explained(error, this.#file);
    }
  }

  /** @param isLarge whether the transaction changes thousands of rows */
  transaction<T>(work: () => T, isLarge = false): T {
    if (isLarge) this.#sqlite.exec(`PRAGMA cache_size = -${largeCacheKiB}`);
    this.#sqlite.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#sqlite.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#sqlite.isTransaction !== false) this.#sqlite.exec('ROLLBACK');
      throw error;
    } finally {
      if (isLarge) this.#sqlite.exec(`PRAGMA cache_size = -${cacheKiB}; PRAGMA shrink_memory`);
    }
  }

  close(): void {
    if (!this.#sqlite.isOpen) return;
    this.#statements.clear();
    this.#sqlite.close();
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#sqlite.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
