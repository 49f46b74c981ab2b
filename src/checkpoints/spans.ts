import type { History, SavedTurn } from './history.ts';
import { ownerKey } from './owner.ts';

/** Marks between which a turn worked without a break. */
export interface TurnSpan {
  readonly startSeq: number;
  /** Null: the turn works. */
  readonly endSeq: number | null;
}

/** Mark edges of the changes that may be a turn's after its last known work: not a part of its span. */
const isAfterDeath = (edge: string): boolean => edge === 'afterCrash';

/**
 * Spans of a turn, oldest first: one, or several when it was resumed after the death of its server. The changes between two spans are
 * the user's, or those of other turns.
 */
export function spansOf(history: Pick<History, 'marks' | 'newestSeq'>, turn: SavedTurn): readonly TurnSpan[] {
  const key = ownerKey(turn);
  const spans: TurnSpan[] = [];
  let open: { readonly startSeq: number; endSeq: number } | undefined;
  let last = turn.startSeq;
  for (const { seq, edge, running } of history.marks(turn.startSeq, turn.endSeq ?? history.newestSeq)) {
    if (!isAfterDeath(edge) && running.some((owner) => ownerKey(owner) === key)) {
      open ??= { startSeq: last, endSeq: seq };
      open.endSeq = seq;
    } else if (open) {
      spans.push(open);
      open = undefined;
    }
    last = seq;
  }
  if (turn.endSeq === null) return [...spans, { startSeq: open?.startSeq ?? last, endSeq: null }];
  return open ? [...spans, open] : spans;
}
