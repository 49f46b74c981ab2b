import { join } from 'node:path';
import { ensurePrivateDirectory, writeFileAtomic } from '../lib/index.ts';
import { createTokenFile, makeToken, readTokenFile, watchedToken } from './token-file.ts';

/** File of the token that opens the pages of the Hub (0600), below the user's home. */
export const pageTokenFile = (home: string): string => join(home, 'hub', 'page.token');

/**
 * Reads the token that opens the Hub's page and the pages of its workspaces, or makes it (0600). It stays the same over
 * restarts of the Hub, so that a page that is open reconnects; `revokePageToken` replaces it.
 *
 * @param home the user's home of Oratorio
 * @throws Error when it can be neither read nor written
 */
export function pageToken(home: string): string {
  const file = pageTokenFile(home);
  for (const each of [home, join(home, 'hub')]) ensurePrivateDirectory(each);
  return readTokenFile(file) ?? createTokenFile(file);
}

/** The page token that a Hub of this home has made; undefined when none has. */
export const knownPageToken = (home: string): string | undefined => readTokenFile(pageTokenFile(home));

/** Returns a reader of the current token: a change by another process holds at once. */
export const watchedPageToken = (home: string): (() => string) =>
  watchedToken(pageTokenFile(home), () => pageToken(home));

/** Makes a new token, if there is one: the old one opens nothing from now on. */
export function revokePageToken(home: string): void {
  if (knownPageToken(home) !== undefined) writeFileAtomic(pageTokenFile(home), `${makeToken()}\n`);
}
