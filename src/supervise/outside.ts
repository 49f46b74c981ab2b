import { lstatSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { directoryName, forksName, homeDirectory, usualHome, workspaceConfigFile } from '../config/index.ts';
import { canonicalPath, usualPlaces } from '../lib/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Directories of a `PATH` in which programs are found that run outside of the sandbox: absolute ones outside of `directory` and of every
 * workspace, where sandboxed commands write. Links are followed. The usual ones without any, because an empty `PATH` means the working
 * directory.
 *
 * @param directory workspace that may have no settings yet
 */
export function searchPathOutside(directory: string | undefined, path = ''): string {
  const kept = directoriesOutside(directory, path);
  return (kept.length > 0 ? kept : usualPlaces).join(delimiter);
}

/** Variables of a program outside of the sandbox: it and its libraries are found as in `searchPathOutside`. */
export function outsideEnvironment(
  directory: string | undefined,
  environment: Environment,
): Record<string, string | undefined> {
  return { ...withOutsideLibraries(environment, directory), PATH: searchPathOutside(directory, environment['PATH']) };
}

/** Variables whose libraries are found as in `searchPathOutside`. An empty directory means the working directory. */
export function withOutsideLibraries(environment: Environment, directory?: string): Record<string, string | undefined> {
  const { LD_LIBRARY_PATH, ...rest } = environment;
  const kept = directoriesOutside(directory, LD_LIBRARY_PATH?.replaceAll(';', delimiter));
  return kept.length === 0 ? rest : { ...rest, LD_LIBRARY_PATH: kept.join(delimiter) };
}

function directoriesOutside(directory: string | undefined, path = ''): readonly string[] {
  const own = directory === undefined ? undefined : canonicalPath(directory);
  const homes = [usualHome(), homeDirectory(process.env)];
  const known = new Map<string, boolean>();
  const isOfWorkspace = (at: string): boolean => {
    if (at === dirname(at)) return false;
    const isOne = known.get(at) ?? (at === own || isWorkspace(at, homes) || isOfWorkspace(dirname(at)));
    known.set(at, isOne);
    return isOne;
  };
  return path.split(delimiter).filter((each) => isAbsolute(each) && ![each, canonicalPath(each)].some(isOfWorkspace));
}

/** Whether a directory holds the files of a workspace, or those of forks. */
function isWorkspace(path: string, homes: readonly string[]): boolean {
  if (basename(path) === forksName) return true;
  if (homes.includes(join(path, directoryName))) return false;
  try {
    return lstatSync(workspaceConfigFile(path), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}
