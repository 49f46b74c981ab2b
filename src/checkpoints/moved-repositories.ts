import { relative } from 'node:path';
import { childOf, shownPath } from './byte-path.ts';
import type { NotCovered } from './entry.ts';
import { type GitState, isMoved, isOwnPart, isSamePlace, movedParts } from './git-state.ts';
import type { History, SavedTurn } from './history.ts';
import { isModulePath, nestedAt, type SavedStates } from './repositories.ts';
import { spansOf } from './spans.ts';

/** Lists the repositories that turns have changed, each once, except the tree's own where an undo can set it back. */
export function movedIn(
  history: History,
  repositories: SavedStates,
  turns: readonly SavedTurn[],
): readonly NotCovered[] {
  const spans = turns.flatMap((turn) => spansOf(history, turn));
  const moved = spans.flatMap(({ startSeq, endSeq }) =>
    movedBetween(history, repositories, [startSeq, endSeq ?? history.newestSeq]),
  );
  return [...new Map(moved.map((each) => [each.path, each])).values()];
}

function movedBetween(
  history: Pick<History, 'gitAt'>,
  repositories: SavedStates,
  [from, through]: readonly [number, number],
): readonly NotCovered[] {
  const [saved, later] = [history.gitAt(from), history.gitAt(through)];
  if (saved === later) return [];
  const [before, after] = [repositories.at(saved), repositories.at(later)];
  const paths = new Set([...Object.keys(before.nested), ...Object.keys(after.nested)]);
  const known = (path: string) => before.nested[path] ?? after.nested[path];
  const nested = [...paths].filter((path) => {
    if (isModulePath(path)) return false;
    const isThere = before.nested[path] !== undefined && after.nested[path] !== undefined;
    return !isThere || differs(nestedAt(before, path, known(path)), nestedAt(after, path, known(path)));
  });
  return [
    ...rootPath(repositories.root, before.root, after.root),
    ...nested.map((path) => shownPath(childOf(path, '.git'))),
  ].map((path) => ({ path, reason: 'repository', size: 0 }));
}

/** Path of the tree's own repository, if it changed and an undo leaves a part of the change. */
function rootPath(root: string, before: GitState | undefined, after: GitState | undefined): readonly string[] {
  if (!differs(before, after) || (before && after && isWhollyRestored(before, after))) return [];
  const [state] = [after, before].flatMap((each) => each ?? []);
  return [state?.place?.kind === 'above' ? relative(root, state.place.directory) : '.git'];
}

/** Whether an undo sets back every difference, unless a user changes it before. */
function isWhollyRestored(before: GitState, after: GitState): boolean {
  if (!isSamePlace(before, after) || before.isPartial || after.isPartial || after.isUncertain) return false;
  const kind = before.place?.kind;
  return kind !== 'above' && kind !== 'elsewhere' && movedParts(before, after).every((name) => isOwnPart(name, before));
}

const differs = (before: GitState | undefined, after: GitState | undefined): boolean =>
  before && after ? isMoved(before, after) : before !== after;
