import { type BytePath, parentOf } from './byte-path.ts';
import type { StatIndex } from './stat-index.ts';

/** Latest moment at which a missing entry can have been removed: the last change of the nearest directory that is still there. Infinite: unknown. */
export function lastChangeOf(path: BytePath, index: StatIndex): number {
  for (let parent = parentOf(path); parent !== undefined; parent = parentOf(parent)) {
    const directory = index.get(parent);
    if (directory) return Number.isNaN(directory.ctime) ? Number.POSITIVE_INFINITY : directory.ctime;
  }
  return Number.POSITIVE_INFINITY;
}
