import { lstatSync, readdirSync } from 'node:fs';
import { type BytePath, childOf } from './byte-path.ts';
import { codeOf } from './errors.ts';
import { maxRepositoryBytes, maxRepositoryEntries } from './limits.ts';
import type { Tree } from './tree.ts';

/** Whether the `.git` of a directory is small enough to be saved with its files. Stops at the limit. */
export function isSmallRepository(tree: Tree, path: BytePath): boolean {
  let [entries, bytes] = [0, 0];
  const pending = [path];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const entry of entriesIn(tree, directory)) {
      entries += 1;
      const child = childOf(directory, entry.name);
      if (entry.isDirectory()) pending.push(child);
      else bytes += lstatSync(tree.plain(child), { throwIfNoEntry: false })?.size ?? 0;
      if (entries > maxRepositoryEntries || bytes > maxRepositoryBytes) return false;
    }
  }
  return true;
}

function entriesIn(tree: Tree, path: BytePath) {
  try {
    return readdirSync(tree.plain(path), { withFileTypes: true, encoding: 'latin1' });
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return [];
  }
}
