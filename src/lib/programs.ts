import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Where to look when `PATH` does not say, or says too little. */
export const usualPlaces = ['/usr/local/bin', '/usr/bin', '/bin'];

/**
 * Finds the program that `name` means: the first executable file of that name, or the file of a path. Relative entries of `PATH`
 * are passed over: they mean another program in every directory.
 * @param path as in `PATH`
 * @param further directories to look in after those of `path`
 * @returns path of a regular file that this user may run; undefined if it cannot be found
 */
export function findProgram(name: string, path = '', further: readonly string[] = usualPlaces): string | undefined {
  if (name.includes('/')) return isExecutable(name) ? name : undefined;
  return [...path.split(delimiter).filter((directory) => isAbsolute(directory)), ...further]
    .map((directory) => join(directory, name))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
