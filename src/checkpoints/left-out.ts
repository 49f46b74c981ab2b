import { lstatSync, readdirSync } from 'node:fs';
import { type BytePath, childOf } from './byte-path.ts';
import type { CheckpointLimits } from './limits.ts';
import { ownName } from './scan.ts';
import type { Tree } from './tree.ts';

/** Size of a tree, or of the room for one. */
export interface Amount {
  readonly entries: number;
  readonly bytes: number;
}

interface Measured extends Amount {
  readonly path: BytePath;
}

/**
 * Chooses, among directories that git ignores, those that a tree over its limits leaves out: the largest, each as a whole, until
 * the others fit. Room is the part of the limits that the rest of the tree does not use.
 *
 * @returns bytes of each directory that is left out, up to the limits of the count
 */
export function leftOutOf(
  tree: Tree,
  ignored: readonly BytePath[],
  room: Amount,
  limits: Pick<CheckpointLimits, 'entries' | 'fileBytes' | 'contentBytes'>,
): ReadonlyMap<BytePath, number> {
  const most = { entries: limits.entries, bytes: limits.contentBytes };
  const measured = ignored.map((path) => measure(tree, path, limits.fileBytes, most));
  const shareOf = ({ entries, bytes }: Amount) => Math.max(entries / most.entries, bytes / most.bytes);
  const left = new Map<BytePath, number>();
  let [entries, bytes] = [room.entries, room.bytes];
  for (const each of measured.sort((a, b) => shareOf(a) - shareOf(b))) {
    // The entry of the directory itself is part of the rest.
    if (each.entries > entries || each.bytes > bytes) left.set(each.path, each.bytes);
    else [entries, bytes] = [entries - each.entries, bytes - each.bytes];
  }
  return left;
}

/** Counts the entries below a directory; stops at the limits, because a directory beyond them never fits. */
function measure(tree: Tree, path: BytePath, fileBytes: number, most: Amount): Measured {
  const pending = [path];
  let [entries, bytes] = [0, 0];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const name of namesIn(tree, directory)) {
      const child = childOf(directory, name);
      const stats = lstatSync(tree.plain(child), { throwIfNoEntry: false });
      entries += 1;
      if (stats?.isDirectory()) pending.push(child);
      else if (stats?.isFile() && stats.size <= fileBytes) bytes += stats.size;
      if (entries > most.entries || bytes > most.bytes) return { path, entries, bytes };
    }
  }
  return { path, entries, bytes };
}

/** An unreadable directory counts for nothing: the scan names it. */
function namesIn(tree: Tree, directory: BytePath): readonly BytePath[] {
  try {
    return readdirSync(tree.plain(directory), { encoding: 'latin1' }).filter((name) => name !== ownName);
  } catch {
    return [];
  }
}
