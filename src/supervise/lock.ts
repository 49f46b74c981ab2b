import { chmodSync, closeSync, lstatSync, openSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { type BoundedReadOptions, fileFault, messageOf } from '../lib/index.ts';
import { isBusy, loadSqlite } from './sqlite.ts';

/** A lock held by this process until `release()` or its end, however it ends. */
export interface Lock {
  readonly file: string;
  /** Whether `file` is still the file we locked. After a deletion a second holder is possible. */
  intact(): boolean;
  release(): void;
}

/** The lock file cannot be used at all (no permission, read-only or full disk, a symlink, another user's, not a lock file). */
export class LockError extends Error {
  override readonly name = 'LockError';
  readonly file: string;

  constructor(file: string, cause: unknown) {
    super(`Cannot use the lock file ${file}: ${messageOf(cause)}`, { cause });
    this.file = file;
  }
}

/** Racers may collide while taking the lock; SQLite then lets one through within this time instead of none. */
const collisionMs = 250;

/** `owner: 'any'`: users share the lock, in a directory that none of them can forge. Default: of this user only. */
export type LockOptions = Pick<BoundedReadOptions, 'owner' | 'uid'>;

/** A connection that is garbage-collected lets go of its lock. */
const held = new Set<DatabaseSync>();

/**
 * Takes an exclusive lock which the kernel releases when this process ends, also by SIGKILL.
 * `file` (made with mode 0600) serves nothing else, is never deleted, and must never be opened by other code of this
 * process: closing any descriptor of it would drop the lock (POSIX record locks belong to a process and an inode).
 * @throws LockError when the file cannot be used.
 */
export function acquireLock(file: string, options: LockOptions = {}): Lock | 'held' {
  const database = open(file, collisionMs, options);
  try {
    // SQLite would begin by writing to a new file, and a killed holder leave its journal behind.
    database.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (isBusy(error)) return 'held';
    throw new LockError(file, error);
  }
  held.add(database);
  const taken = statSync(file);
  return {
    file,
    intact() {
      const now = statSync(file, { throwIfNoEntry: false });
      return held.has(database) && now !== undefined && now.ino === taken.ino && now.dev === taken.dev;
    },
    release() {
      if (held.delete(database)) database.close();
    },
  };
}

/**
 * Whether the lock is held now, without taking it: a shared lock is tried, so that probes never disturb each other. A missing
 * file is free; a file that `acquireLock` refuses is unknown.
 */
export function probeLock(file: string, options: LockOptions = {}): 'free' | 'held' | 'unknown' {
  let database: DatabaseSync | undefined;
  try {
    if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return 'free';
    const fault = lockFault(file, options);
    if (fault !== undefined) return 'unknown';
    database = connect(file, 0);
    database.exec('BEGIN; SELECT count(*) FROM sqlite_schema; ROLLBACK');
    return 'free';
  } catch (error) {
    return isBusy(error) ? 'held' : 'unknown';
  } finally {
    database?.close();
  }
}

/** Says why `file` cannot serve as a lock; undefined when it can, or does not exist. */
export function lockFault(file: string, options: LockOptions = {}): string | undefined {
  const fault = fileFault(file, options);
  if (fault) return fault.fault;
  const size = lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size === 0 ? undefined : 'is not empty, so it is not a lock file';
}

/** Opens the lock's database, into which nothing is ever written: SQLite never opens an untrusted file. */
function open(file: string, timeout: number, options: LockOptions): DatabaseSync {
  try {
    createPrivate(file, options);
    return connect(file, timeout);
  } catch (error) {
    throw new LockError(file, error);
  }
}

const connect = (file: string, timeout: number): DatabaseSync => new (loadSqlite().DatabaseSync)(file, { timeout });

/** Creates the file with mode 0600 if it is missing; an existing one must not be opened here (see `acquireLock`). */
function createPrivate(file: string, options: LockOptions): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const fault = lockFault(file, options);
    if (fault !== undefined)
      throw new Error(`it ${fault}. Move it aside: the next start makes a new one`, { cause: error });
    if (options.owner === 'any') return;
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
  }
}
