import { readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

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

const maxLinks = 40;

/** Canonical path of the nearest parent that exists, with the rest of the name. A link that leads nowhere counts as its target. */
export function canonicalPath(path: string, links = maxLinks): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    if (parent === path || links === 0) return path;
    const found = join(canonicalPath(parent, links - 1), basename(path));
    const target = linkTarget(found);
    return target === undefined ? found : canonicalPath(resolve(dirname(found), target), links - 1);
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
