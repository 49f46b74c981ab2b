import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Where to look when `PATH` does not say, or says too little. */
const usualPlaces = ['/usr/local/bin', '/usr/bin', '/bin'];

/** Absolute path of the first executable file called `name`; undefined: not found. Relative entries of `PATH` are passed over: they mean another program in every directory. */
export function findProgram(name: string, path = ''): string | undefined {
  return [...path.split(delimiter).filter((directory) => isAbsolute(directory)), ...usualPlaces]
    .map((directory) => join(directory, name))
    .find(isExecutable);
}

/** A regular file that this user may run. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
