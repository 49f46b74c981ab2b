import { chmodSync, closeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { ensurePrivateDirectory, openToAppend } from '../../lib/index.ts';
import { defaults } from '../../protocol/index.ts';
import { enableWriteAheadLog, loadSqlite } from '../../supervise/index.ts';
import { StorageError } from '../thread-store.ts';
import { storageError } from './errors.ts';

export interface DayLedgerOptions {
  /** `<home>/spending.db`, shared by all workspaces of the user. */
  readonly file: string;
  readonly workspace: string;
  /** Default: the time of the machine, in its time zone. */
  readonly now?: () => Date;
}

/**
 * Money that a user spends on models, by local day and workspace. Several processes write it at once; each request is one
 * commit, so that a kill loses none that was counted. Opened on first use.
 */
export class DayLedger {
  readonly #options: DayLedgerOptions;
  #sqlite: DatabaseSync | undefined;

  constructor(options: DayLedgerOptions) {
    this.#options = options;
  }

  /** Adds the cost of a request, in US dollars. @throws StorageError */
  add(usd: number): void {
    if (usd === 0) return;
    this.#guard((sqlite) =>
      sqlite
        .prepare(
          `INSERT INTO spending (day, workspace, usd) VALUES (?, ?, ?)
           ON CONFLICT (day, workspace) DO UPDATE SET usd = usd + excluded.usd`,
        )
        .run(this.#today(), this.#options.workspace, usd),
    );
  }

  /** Spent today by all workspaces, in US dollars. @throws StorageError */
  today(): number {
    const row = this.#guard((sqlite) =>
      sqlite.prepare('SELECT total(usd) AS usd FROM spending WHERE day = ?').get(this.#today()),
    );
    return Number(row?.['usd'] ?? 0);
  }

  close(): void {
    this.#sqlite?.close();
    this.#sqlite = undefined;
  }

  /** Local date as `2026-11-23`. */
  #today(): string {
    const { now = () => new Date() } = this.#options;
    const date = now();
    const two = (part: number) => String(part).padStart(2, '0');
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  }

  #guard<T>(work: (sqlite: DatabaseSync) => T): T {
    const { file } = this.#options;
    try {
      this.#sqlite ??= open(file);
      return work(this.#sqlite);
    } catch (error) {
      const failure = storageError(error, file);
      throw failure instanceof StorageError
        ? failure
        : new StorageError('failed', `${file} cannot be used`, { cause: error });
    }
  }
}

function open(file: string): DatabaseSync {
  ensurePrivateDirectory(dirname(file));
  // Made by us before SQLite opens it, so that no other user can read it at any moment.
  closeSync(openToAppend(file));
  chmodSync(file, 0o600);
  const { DatabaseSync: Sqlite } = loadSqlite();
  const sqlite = new Sqlite(file);
  try {
    sqlite.exec(`PRAGMA busy_timeout = ${defaults.agent.ledgerBusyMs}`);
    enableWriteAheadLog(sqlite, defaults.agent.ledgerBusyMs);
    sqlite.exec(
      `CREATE TABLE IF NOT EXISTS spending (
         day TEXT NOT NULL, workspace TEXT NOT NULL, usd REAL NOT NULL, PRIMARY KEY (day, workspace)
       ) STRICT`,
    );
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}
