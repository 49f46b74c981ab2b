import type { DatabaseSync } from 'node:sqlite';
import { monotonicMs } from './clock.ts';

let sqlite: typeof import('node:sqlite') | undefined;

/**
 * Loads `node:sqlite` on first use: importing a room costs nothing. It announces itself as
 * experimental while it loads: that one warning is left out.
 */
export function loadSqlite(): typeof import('node:sqlite') {
  if (sqlite) return sqlite;
  const emitWarning = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'ExperimentalWarning' && String(warning).startsWith('SQLite')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  }) as typeof process.emitWarning;
  try {
    sqlite = process.getBuiltinModule('node:sqlite');
    if (!sqlite) throw new Error(`Node ${process.version} has no node:sqlite, which Node 22.13 and later have`);
  } finally {
    process.emitWarning = emitWarning;
  }
  return sqlite;
}

/** SQLITE_BUSY or SQLITE_LOCKED, with their extended codes. */
export function isBusy(error: unknown): boolean {
  const code = Number((error as { errcode?: number }).errcode) & 0xff;
  return code === 5 || code === 6;
}

const retryMs = 5;

/**
 * Switches a database to WAL, which blocks this thread while other connections use the file, for `busyMs` at the most. A busy timeout does
 * not cover the switch: SQLite opens a read transaction for it and refuses at once when another connection writes, as it does while two
 * processes open a new file.
 *
 * @throws the error of SQLite when the file stays in use
 */
export function enableWriteAheadLog(database: DatabaseSync, busyMs: number): void {
  const deadline = monotonicMs() + busyMs;
  const bell = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (!isBusy(error) || monotonicMs() >= deadline) throw error;
      Atomics.wait(bell, 0, 0, retryMs);
    }
  }
}
