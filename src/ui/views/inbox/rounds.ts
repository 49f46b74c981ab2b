import { isEdit } from '../../../protocol/browser.ts';
import type { ApprovalRequest } from '../../../protocol/index.ts';

/** At least one entry. */
export type Group<T> = readonly [T, ...T[]];

/** Groups the edits of one round, in the order of their first requests. @param roundOf returns the same value for edits of one round */
export function rounds<T>(
  entries: readonly T[],
  requestOf: (entry: T) => ApprovalRequest,
  roundOf: (entry: T) => string = (entry) => requestOf(entry).turnId,
): readonly Group<T>[] {
  const groups: [T, ...T[]][] = [];
  const edits = new Map<string, [T, ...T[]]>();
  for (const entry of entries) {
    const isOne = isEdit(requestOf(entry));
    const round = isOne ? edits.get(roundOf(entry)) : undefined;
    if (round) {
      round.push(entry);
      continue;
    }
    const group: [T, ...T[]] = [entry];
    groups.push(group);
    if (isOne) edits.set(roundOf(entry), group);
  }
  return groups;
}
