import { ReviewStoreError, type ReviewStoreErrorCode } from '../errors.ts';

/** SQLite's primary result codes (sqlite.org/rescode.html) with a code of their own; all others become databaseFailed. */
const resultCodes: Readonly<Record<number, ReviewStoreErrorCode>> = {
  5: 'databaseBusy',
  6: 'databaseBusy',
  8: 'databaseReadOnly',
  10: 'databaseFull',
  11: 'databaseCorrupt',
  13: 'databaseFull',
  26: 'databaseCorrupt',
};

/** SQLITE_IOERR_READ and SQLITE_IOERR_SHORT_READ: the disk fails, but is not full. */
const readErrors = [266, 522];

const systemCodes: Readonly<Record<string, ReviewStoreErrorCode>> = {
  ENOSPC: 'databaseFull',
  EDQUOT: 'databaseFull',
  EROFS: 'databaseReadOnly',
  EACCES: 'databaseReadOnly',
  EPERM: 'databaseReadOnly',
};

const advice: Partial<Record<ReviewStoreErrorCode, string>> = {
  databaseBusy: 'Another process is writing to it. Only one backend may use a SQLite file',
  databaseReadOnly: 'Make it and its directory writable for this user',
  databaseFull: 'Free some disk space; stored data is intact',
  databaseCorrupt: 'It was not changed. Stop the backend and move it aside with the files that end in -wal and -shm',
};

interface SystemError {
  readonly code?: string;
  readonly errcode?: number;
}

/** Converts an error of SQLite or the file system to a ReviewStoreError that names `file`. Other errors are bugs and are returned unchanged. */
export function sqliteError(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof ReviewStoreError) return error;
  const code = codeOf(error as SystemError);
  if (code === undefined) return error;
  const hint = advice[code];
  const text = `${file} cannot be used (${error.message})${hint === undefined ? '' : `. ${hint}`}`;
  return new ReviewStoreError(code, text, { cause: error });
}

function codeOf({ code, errcode }: SystemError): ReviewStoreErrorCode | undefined {
  if (code === 'ERR_SQLITE_ERROR' && errcode !== undefined) {
    return readErrors.includes(errcode) ? 'databaseFailed' : (resultCodes[errcode & 0xff] ?? 'databaseFailed');
  }
  // Code of node:sqlite for a closed database.
  if (code === 'ERR_INVALID_STATE') return 'storeClosed';
  return code !== undefined && /^E[A-Z0-9]+$/.test(code) ? (systemCodes[code] ?? 'databaseFailed') : undefined;
}
