import { type BytePath, depthOf, parentOf, shownPath } from './byte-path.ts';
import type { PathEntry, StampedEntry } from './entry.ts';
import type { History } from './history.ts';

/** One path that a restore changes. */
export interface RestoreOp {
  readonly path: BytePath;
  /** Current entry; null: missing. */
  readonly have: StampedEntry | null;
  /** Wanted entry; null: missing. */
  readonly want: PathEntry | null;
}

/** A change of the user or of another thread that a restore would overwrite. */
export interface Conflict {
  readonly path: string;
  readonly change: 'created' | 'modified' | 'deleted';
  /** `user`, or the thread whose turn made it. */
  readonly by: string;
}

export interface PlannedTree {
  readonly history: History;
  /** Operations, completed and corrected in place. */
  readonly ops: Map<BytePath, RestoreOp>;
  /** Overwrites conflicting entries. */
  readonly force: boolean;
  /** Mode of a directory that is made again. */
  readonly modeOf: (path: BytePath) => number | undefined;
}

const usualMode = 0o755;

/**
 * Makes a plan fit the present directories: creates missing ones, and spares one into which others put something.
 *
 * @returns entries that stand in the way; without `force` their operations are gone from the plan
 */
export function fitDirectories(planned: PlannedTree): Conflict[] {
  return [...completeParents(planned), ...spareFullDirectories(planned)];
}

/** Adds the missing directories of entries. */
function completeParents({ history, ops, force, modeOf }: PlannedTree): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const { path, want } of [...ops.values()]) {
    if (!want) continue;
    for (let parent = parentOf(path); parent !== undefined; parent = parentOf(parent)) {
      const planned = ops.get(parent);
      const have = history.current(parent);
      const final = planned ? planned.want : (have ?? null);
      if (final?.kind === 'directory') continue;
      if (final === null || force) {
        const directory: PathEntry = {
          ...{ kind: 'directory', mode: modeOf(parent) ?? usualMode },
          ...{ size: 0, hash: null, target: null },
        };
        ops.set(parent, { path: parent, have: have ?? null, want: directory });
      } else {
        conflicts.push({ path: shownPath(parent), change: 'modified', by: 'user' });
        ops.delete(path);
        break;
      }
    }
  }
  return conflicts;
}

/** Removes a directory only with all its entries: an entry that others put there stays, and the directory with it. */
function spareFullDirectories({ history, ops, force }: PlannedTree): Conflict[] {
  const conflicts: Conflict[] = [];
  const going = [...ops.values()]
    .filter(({ have, want }) => have?.kind === 'directory' && want?.kind !== 'directory')
    .sort((a, b) => depthOf(b.path) - depthOf(a.path));
  for (const { path, want } of going) {
    const staying = history.below(path).find(({ path: child }) => {
      const op = ops.get(child);
      return op ? op.want !== null : true;
    });
    if (!staying) continue;
    if (want && force && staying.kind !== 'skipped') {
      for (const have of history.below(path)) ops.set(have.path, { path: have.path, have, want: null });
      continue;
    }
    ops.delete(path);
    if (want) conflicts.push({ path: shownPath(staying.path), change: 'created', by: 'user' });
  }
  return conflicts;
}
