import { realpathSync } from 'node:fs';
import { isAbsolute, relative, sep } from 'node:path';

/** Whether `path` is `directory` or lies below it, by names alone. Both are absolute. */
export function isWithin(directory: string, path: string): boolean {
  const below = relative(directory, path);
  return below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
}

/** Real path; the path itself where it cannot be resolved. */
export function realPathOr(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
