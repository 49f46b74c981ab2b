import { privateCacheDirectory } from '../lib/index.ts';
import { checkedMount } from '../places/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds, and creates, the directory in which Node stores the compiled code of agent servers: a third of the work of a start
 * is compiling. `NODE_COMPILE_CACHE` of the Hub wins; else it is `oratorio/compiled` in the user's cache (XDG).
 *
 * @returns undefined where there is no such directory that only this user can write: its content runs unchecked
 */
export function compileCacheDirectory(environment: Environment): string | undefined {
  return environment['NODE_COMPILE_CACHE'] || privateCacheDirectory('compiled', environment);
}

/**
 * Directory of compiled code for a container, which only reads it: code that it writes would run outside of it.
 *
 * @returns undefined if it is missing, or if it may not be mounted
 */
export function mountedCompileCache({
  environment,
  home,
}: {
  readonly environment: Environment;
  readonly home: string;
}): string | undefined {
  const directory = compileCacheDirectory(environment);
  try {
    return directory && checkedMount(directory, home).path;
  } catch {
    // The agent server compiles its code.
    return undefined;
  }
}
