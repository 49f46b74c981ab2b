import type { RaceAttempt } from '../../../protocol/index.ts';
import type { Feed } from '../feed.ts';
import type { ThreadRegistry } from './registry.ts';

export interface RaceRecordOptions {
  readonly registry: ThreadRegistry;
  readonly feed: Feed;
}

/** Saves the outcome of an attempt of a race, and notifies every client. */
export function recordRace({ registry, feed }: RaceRecordOptions, threadId: string, race: RaceAttempt): void {
  registry.update(threadId, { config: { ...registry.get(threadId).config, race } });
  if (!registry.isEphemeral(threadId)) feed.broadcast({ method: 'thread/raceUpdated', params: { threadId, race } });
}

/** Notes that the changes of an attempt are in the workspace: this restore takes them back. */
export function recordApplied(options: RaceRecordOptions, threadId: string, restoreId: string): void {
  const race = options.registry.get(threadId).config?.race;
  if (race) recordRace(options, threadId, { ...race, restoreId });
}

/** Records that this restore of a thread was undone: its attempt no longer counts as applied. */
export function recordTakenBack(options: RaceRecordOptions, threadId: string, restoreId: string): void {
  for (const { id, forkedFromThreadId, config } of options.registry.storeOf(threadId).threads()) {
    const race = config?.race;
    if (forkedFromThreadId !== threadId || race?.restoreId !== restoreId) continue;
    const { restoreId: _, ...rest } = race;
    recordRace(options, id, rest);
  }
}
