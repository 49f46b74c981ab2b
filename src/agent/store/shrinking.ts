import type { DatabaseSync } from 'node:sqlite';
import { StorageError } from '../thread-store.ts';
import { storageError } from './errors.ts';

/** SQLite's number for auto_vacuum = INCREMENTAL. */
const incremental = 2;

/** Most bytes to rewrite: a larger file would hold up the start. */
const rewritableBytes = 64 * 1_048_576;

/** Whether pages that are free can be given back to the file system. */
export function canShrink(sqlite: DatabaseSync): boolean {
  return pragma(sqlite, 'auto_vacuum') === incremental;
}

/** Whether nothing was written to the file yet. */
export function isEmpty(sqlite: DatabaseSync): boolean {
  return pragma(sqlite, 'page_count') === 0;
}

/** Makes an empty database one whose file can get smaller. Later that takes `makeShrinkable`. */
export function beginShrinkable(sqlite: DatabaseSync): void {
  sqlite.exec('PRAGMA auto_vacuum = INCREMENTAL');
}

/**
 * Rewrites a database of an earlier version, so that its file can get smaller. A large database stays
 * unchanged: its free pages are used again. So does a database that the disk has no room to rewrite.
 */
export function makeShrinkable(sqlite: DatabaseSync, file: string): void {
  if (canShrink(sqlite)) return;
  if (pragma(sqlite, 'page_count') * pragma(sqlite, 'page_size') >= rewritableBytes) return;
  try {
    sqlite.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM');
  } catch (error) {
    // The database is unchanged and as readable as before. The next start tries again.
    if (!(storageError(error, file) instanceof StorageError)) throw error;
  }
}

function pragma(sqlite: DatabaseSync, name: 'auto_vacuum' | 'page_count' | 'page_size'): number {
  return Number(sqlite.prepare(`PRAGMA ${name}`).get()?.[name]);
}
