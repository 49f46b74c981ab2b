import { lstatSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { ensurePrivateDirectory } from './directories.ts';

/**
 * Finds, and creates, a directory in the user's cache (XDG): `oratorio/<name>`.
 *
 * @returns undefined where there is no such directory that only this user can write
 */
export function privateCacheDirectory(
  name: string,
  { XDG_CACHE_HOME: cache, HOME: home }: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const base = cache || (home && join(home, '.cache'));
  if (!base || !isAbsolute(base) || process.getuid === undefined) return undefined;
  const directory = join(base, 'oratorio', name);
  try {
    ensurePrivateDirectory(directory);
    const found = lstatSync(directory);
    return found.isDirectory() && found.uid === process.getuid() ? directory : undefined;
  } catch {
    // A home that is read-only or another user's has no cache.
    return undefined;
  }
}
