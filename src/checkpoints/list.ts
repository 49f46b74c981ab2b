import type { Uncovered } from './entry.ts';
import { type History, notCoveredOf } from './history.ts';
import { maxListedPaths } from './limits.ts';
import { restorePrefix } from './plan.ts';
import type { Restores } from './restores.ts';

/** One checkpoint of a conversation. */
export interface CheckpointInfo extends Uncovered {
  readonly turnId: string;
  readonly kind: 'turn' | 'restore';
  readonly at: string;
  /** Files and directories of the checkpoint. */
  readonly files: number;
  readonly bytes: number;
  /** It was taken back. */
  readonly isUndone: boolean;
  /** The server ended in the middle of it, and completed it at its next start. */
  readonly recovered: boolean;
}

/** Checkpoints of a thread, oldest first. */
export function checkpointsOf(history: History, restores: Restores, thread: string): readonly CheckpointInfo[] {
  return history.turns(thread).map((saved) => {
    const { turn, startSeq, undoneBy } = saved;
    const { at, files, bytes } = history.mark(startSeq);
    const skipped = history.skippedAt(startSeq, maxListedPaths);
    return {
      turnId: turn,
      kind: turn.startsWith(restorePrefix) ? 'restore' : 'turn',
      at: new Date(at).toISOString(),
      ...{ files, bytes },
      notCovered: skipped.map(notCoveredOf),
      notCoveredTotal: skipped.length < maxListedPaths ? skipped.length : history.countSkippedAt(startSeq),
      isUndone: undoneBy !== null,
      recovered: restores.wasRecovered(saved),
    };
  });
}

/** Turns from this one on that can be taken back together: those of the thread, or one restore alone. @returns undefined: there is no such checkpoint */
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
