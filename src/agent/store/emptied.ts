import { lstatSync, renameSync } from 'node:fs';
import { storageError } from './errors.ts';

const logs = ['-wal', '-shm', '-journal'];

/**
 * Moves an empty database file and the files of its log aside: SQLite would take it for a new database and delete the log.
 *
 * @returns new path of the file; undefined when it is missing or not empty
 * @throws StorageError when the files cannot be read or moved
 */
export function moveEmptiedAside(file: string): string | undefined {
  const aside = `${file}.damaged-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  try {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found?.isFile() || found.size > 0) return undefined;
    // The logs first: without them, an interrupted move is repeated at the next start.
    for (const log of logs) {
      if (lstatSync(`${file}${log}`, { throwIfNoEntry: false })) renameSync(`${file}${log}`, `${aside}${log}`);
    }
    renameSync(file, aside);
  } catch (error) {
    throw storageError(error, file);
  }
  return aside;
}
