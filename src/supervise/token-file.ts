import { randomBytes } from 'node:crypto';
import { chmodSync, statSync } from 'node:fs';
import { createFileAtomic, readBoundedFile, withAdvice, writeFileAtomic } from '../lib/index.ts';

/** 32 random bytes in an alphabet that needs no escaping in a URL. */
export const tokenShape = /^[A-Za-z0-9_-]{43}$/;

export const makeToken = (): string => randomBytes(32).toString('base64url');

/** The token in a file of this user; undefined when the file is missing or holds no token. */
export function readTokenFile(file: string): string | undefined {
  const token = readBoundedFile(file)?.trim();
  // A copy of the file may have been opened to others.
  if (token !== undefined && process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
    chmodSync(file, 0o600);
  return token !== undefined && tokenShape.test(token) ? token : undefined;
}

/**
 * Makes a token file (0600) whose directory exists. The process that links its file first has made the token: the others
 * read that.
 */
export function createTokenFile(file: string): string {
  createFileAtomic(file, `${makeToken()}\n`);
  const token = withAdvice(() => readTokenFile(file));
  if (token !== undefined) return token;
  // The file that is there holds no token.
  writeFileAtomic(file, `${makeToken()}\n`);
  return readTokenFile(file) ?? '';
}

/** Changes when the file does. */
export function fileStamp(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? '' : `${found.ino} ${found.mtimeMs} ${found.size}`;
}

/** Returns a reader of the current token in `file`: a change by another process holds at once. Each call checks the file. */
export function watchedToken(file: string, read: () => string): () => string {
  let known = read();
  let seen = fileStamp(file);
  return () => {
    if (fileStamp(file) === seen) return known;
    known = read();
    seen = fileStamp(file);
    return known;
  };
}
