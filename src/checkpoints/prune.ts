import type { Contents } from './contents.ts';
import type { Copies } from './copies.ts';
import type { History } from './history.ts';
import type { CheckpointLimits } from './limits.ts';
import type { Restores } from './restores.ts';

export interface PrunedStore {
  readonly history: History;
  readonly contents: Contents;
  readonly restores: Restores;
  readonly copies: Copies;
}

/**
 * Deletes turns that are too old, and the oldest turns while the store is too large. Whole turns go, with the contents that only
 * they needed; never one that runs, nor the newest, whose undo is the likeliest request. Each step leaves a store that is whole.
 */
export function prune(
  { history, contents, restores, copies }: PrunedStore,
  { ageMs, storeBytes }: Pick<CheckpointLimits, 'ageMs' | 'storeBytes'>,
): void {
  copies.trim();
  const trim = () => {
    restores.trim();
    if (history.trim()) contents.clean();
  };
  if (history.dropOlderThan(Date.now() - ageMs)) trim();
  while (contents.storedBytes > storeBytes && history.dropOldest()) trim();
}
