import { findHolder } from '../../protocol/index.ts';
import { StorageError } from '../thread-store.ts';

/** SQLite's primary result codes (sqlite.org/rescode.html) that mean more to a caller than "it failed". */
const resultCodes: Readonly<Record<number, StorageError['code']>> = {
  5: 'busy',
  6: 'busy',
  8: 'readOnly',
  10: 'diskFull',
  11: 'corrupt',
  13: 'diskFull',
  26: 'corrupt',
};

/** SQLITE_IOERR_READ and SQLITE_IOERR_SHORT_READ: the disk fails, but not for want of room. */
const readErrors = [266, 522];

const systemCodes: Readonly<Record<string, StorageError['code']>> = {
  ENOSPC: 'diskFull',
  EDQUOT: 'diskFull',
  EROFS: 'readOnly',
  EACCES: 'readOnly',
  EPERM: 'readOnly',
};

interface SystemError {
  readonly code?: string;
  readonly errcode?: number;
  readonly message: string;
}

/**
 * Converts an error of SQLite or the file system about `file`. Any other error is a bug and is returned unchanged.
 * SQLite's messages name tables and files, never values.
 */
export function storageError(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof StorageError) return error;
  const { code, errcode, message } = error as SystemError;
  const meaning = meaningOf(code, errcode);
  return meaning ? new StorageError(meaning, explain(meaning, file, message), { cause: error }) : error;
}

function meaningOf(code: string | undefined, errcode: number | undefined): StorageError['code'] | undefined {
  if (code === 'ERR_SQLITE_ERROR' && errcode !== undefined) {
    return readErrors.includes(errcode) ? 'failed' : (resultCodes[errcode & 0xff] ?? 'failed');
  }
  // Code of node:sqlite for a closed database.
  if (code === 'ERR_INVALID_STATE') return 'failed';
  return code !== undefined && /^E[A-Z0-9]+$/.test(code) ? (systemCodes[code] ?? 'failed') : undefined;
}

function explain(code: StorageError['code'], file: string, message: string): string {
  switch (code) {
    case 'busy':
      return `Another program holds ${file} (${message}). ${findHolder(file)}`;
    case 'diskFull':
      return `The disk does not accept writes to ${file} (${message}). Make room; stored data is intact`;
    case 'readOnly':
      return `${file} cannot be written (${message}). Make it and its directory writable for this user`;
    case 'corrupt':
      return `${file} is damaged or is not a database (${message}). It was not changed. Stop the agent server and move it aside together with the files beside it that end in -wal and -shm: the next start makes a new one. To save all readable data: sqlite3 ${file} .recover`;
    case 'failed':
      return `${file} cannot be used (${message})`;
  }
}

/** The errors of every store for an unknown id. */
export const noThread = (threadId: string) => new StorageError('failed', `There is no thread ${threadId} in the store`);
export const noTurn = (threadId: string, turnId: string) =>
  new StorageError('failed', `There is no turn ${turnId} of thread ${threadId} in the store`);
export const noGrowingItem = (threadId: string, itemId: string) =>
  new StorageError('failed', `There is no item ${itemId} of thread ${threadId} in the store whose text could grow`);
export const movedItem = (threadId: string, itemId: string) =>
  new StorageError('failed', `Item ${itemId} of thread ${threadId} belongs to another turn`);
