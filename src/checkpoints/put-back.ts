import { type BytePath, isOfRepository, shownPath } from './byte-path.ts';
import { isSame } from './entry.ts';
import { type History, plainEntry } from './history.ts';
import { ownerKey } from './owner.ts';
import { restorePrefix } from './plan.ts';

/** A file that turns have changed, and that has its earlier state again. */
export interface PutBack {
  readonly path: string;
  /** Id by which the restore can be taken back. */
  readonly restoreId: string;
}

export interface PutBackRequest {
  readonly thread: string;
  /** Undefined: all turns of the thread. */
  readonly turn: string | undefined;
}

/** Most named files. */
const maxFiles = 2_000;

/**
 * Files whose last change is a restore of the thread to their state before its turns. Turns that were taken back as a whole
 * have none.
 */
export function putBackOf(history: History, { thread, turn }: PutBackRequest): readonly PutBack[] {
  const saved = history.turns(thread).filter(({ undoneBy }) => undoneBy === null);
  const isRestore = (name: string) => name.startsWith(restorePrefix);
  const turns = saved.filter((each) => !isRestore(each.turn) && (turn === undefined || each.turn === turn));
  const restores = new Map(saved.flatMap((each) => (isRestore(each.turn) ? [[ownerKey(each), each.turn]] : [])));
  const [first] = turns;
  if (!first || restores.size === 0) return [];
  const own = new Set(turns.map(ownerKey));
  const known = new Map<number, boolean>();
  const isOwn = (seq: number): boolean => {
    const isKnown = known.get(seq) ?? history.ownersAt(seq).running.some((owner) => own.has(ownerKey(owner)));
    known.set(seq, isKnown);
    return isKnown;
  };
  const found: PutBack[] = [];
  const spans = new Map<BytePath, { readonly firstOwn: number; last: number }>();
  for (const { path, seq } of history.changes(first.startSeq, history.newestSeq)) {
    if (isOfRepository(path)) continue;
    const span = spans.get(path);
    if (span) span.last = seq;
    else if (isOwn(seq)) spans.set(path, { firstOwn: seq, last: seq });
  }
  for (const [path, { firstOwn, last }] of spans) {
    const [owner] = history.ownersAt(last).running.flatMap((each) => restores.get(ownerKey(each)) ?? []);
    const [before, now] = [history.at(path, firstOwn - 1), history.current(path)];
    if (owner === undefined || !isSame(before && plainEntry(before), now && plainEntry(now))) continue;
    found.push({ path: shownPath(path), restoreId: owner });
    if (found.length === maxFiles) break;
  }
  return found;
}
