import { firstOf, type Uncovered } from './entry.ts';
import { type History, notCoveredOf } from './history.ts';
import { maxListedPaths } from './limits.ts';
import { movedIn } from './moved-repositories.ts';
import { restorePrefix } from './plan.ts';
import type { Repositories } from './repositories.ts';
import type { Restores } from './restores.ts';

/** One checkpoint of a conversation. */
export interface CheckpointInfo extends Uncovered {
  readonly turnId: string;
  readonly kind: 'turn' | 'restore';
  readonly at: string;
  /** Files and directories of the checkpoint. */
  readonly files: number;
  readonly bytes: number;
  /** Whether the checkpoint was taken back. */
  readonly isUndone: boolean;
  /** Whether the server ended during the restore, and completed it at its next start. */
  readonly recovered: boolean;
}

export interface ListedStore {
  readonly history: History;
  readonly restores: Restores;
  readonly repositories: Repositories;
}

/** Checkpoints of a thread, oldest first. */
export function checkpointsOf(
  { history, restores, repositories }: ListedStore,
  thread: string,
): readonly CheckpointInfo[] {
  return history.turns(thread).map((saved) => {
    const { turn, startSeq, undoneBy } = saved;
    const endSeq = saved.endSeq ?? startSeq;
    const { at, files, bytes } = history.mark(startSeq);
    const skipped = history.skippedIn(startSeq, endSeq, maxListedPaths);
    const total = skipped.length < maxListedPaths ? skipped.length : history.countSkippedIn(startSeq, endSeq);
    const moved = movedIn(history, repositories, [saved]);
    return {
      turnId: turn,
      kind: turn.startsWith(restorePrefix) ? 'restore' : 'turn',
      at: new Date(at).toISOString(),
      ...{ files, bytes },
      notCovered: firstOf([...moved, ...skipped.map(notCoveredOf)]),
      notCoveredTotal: total + moved.length,
      isUndone: undoneBy !== null,
      recovered: restores.wasRecovered(saved),
    };
  });
}

/**
 * Turns from this one on that can be taken back together: those of the thread, or one restore alone.
 * @returns undefined: there is no such checkpoint
 */
export function turnsFrom(history: History, thread: string, turnId: string): readonly string[] | undefined {
  const turns = history.turns(thread);
  const from = turns.find(({ turn }) => turn === turnId);
  if (!from) return undefined;
  if (turnId.startsWith(restorePrefix)) return [turnId];
  return turns
    .filter(
      ({ turn, startSeq, undoneBy }) =>
        startSeq >= from.startSeq && undoneBy === null && !turn.startsWith(restorePrefix),
    )
    .map(({ turn }) => turn);
}
