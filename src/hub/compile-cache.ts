import { lstatSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { ensurePrivateDirectory } from '../lib/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds, and creates, the directory in which Node stores the compiled code of agent servers: a third of the work of a start
 * is compiling. `NODE_COMPILE_CACHE` of the Hub wins; else it is `oratorio/compiled` in the user's cache (XDG).
 *
 * @returns undefined where there is no such directory that only this user can write: its content runs unchecked
 */
export function compileCacheDirectory(environment: Environment): string | undefined {
  const { NODE_COMPILE_CACHE: chosen, XDG_CACHE_HOME: cache, HOME: home } = environment;
  if (chosen) return chosen;
  const base = cache || (home && join(home, '.cache'));
  if (!base || !isAbsolute(base) || process.getuid === undefined) return undefined;
  const directory = join(base, 'oratorio', 'compiled');
  try {
    ensurePrivateDirectory(directory);
    const found = lstatSync(directory);
    return found.isDirectory() && found.uid === process.getuid() ? directory : undefined;
  } catch {
    // A home that is read-only or another user's: servers start without the cache.
    return undefined;
  }
}
