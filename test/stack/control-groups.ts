/** Control groups of the containers of a run, which stay when its engine is killed. */
import { readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export interface Removal {
  /** Where control groups are mounted. */
  readonly root?: string;
  /** Removes an empty directory, as `rmdirSync` does. */
  readonly remove?: (directory: string) => void;
  /** Leaves groups that are busy at the deadline: another engine uses them, too. */
  readonly isShared?: boolean;
  /** Deadline of all groups together; the default is one that only a process without end reaches. */
  readonly deadlineMs?: number;
}

const pollMs = 50;

/**
 * Removes the groups of a name with all below them. Version 1 has one tree for each controller. A group is busy until its last
 * process has ended, and those of a killed namespace are still ending when the program that held it is gone.
 *
 * @throws the error of the system for a group that is busy at the deadline
 */
export async function removeControlGroups(
  name: string,
  {
    root = '/sys/fs/cgroup',
    remove = rmdirSync,
    isShared = false,
    deadlineMs = isShared ? 2_000 : 60_000,
  }: Removal = {},
): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  const trees = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const tree of ['', ...trees.map((entry) => entry.name)]) {
    for (const group of groupsUnder(join(root, tree, name))) {
      while (!isRemoved(group, remove, !isShared && performance.now() >= deadline)) {
        if (performance.now() >= deadline) break;
        await pause(pollMs);
      }
    }
  }
}

/** Children first. */
function groupsUnder(directory: string): string[] {
  try {
    const inner = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...inner.flatMap((entry) => groupsUnder(join(directory, entry.name))), directory];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function isRemoved(group: string, remove: (directory: string) => void, isLate: boolean): boolean {
  try {
    remove(group);
    return true;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (isLate || !['EBUSY', 'ENOTEMPTY'].includes(code)) throw error;
    return false;
  }
}
