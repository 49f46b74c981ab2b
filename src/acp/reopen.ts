import { setTimeout as sleep } from 'node:timers/promises';
import { AppServerConnectionError, HubUnavailableError } from '../client/index.ts';
import { defaults } from '../protocol/index.ts';

/**
 * Opens a thread again whose connection was lost. The next Hub gets the time of its start. A Hub that still offers the dead
 * server gets a moment to notice; the time in which it started a server, or a server answered, does not count.
 *
 * @param open opens the thread; resolves to false when its connection is lost meanwhile
 * @param isWanted whether to try again
 * @throws the error of `open` that ends the search
 */
export async function reopen(open: () => Promise<boolean>, isWanted: () => boolean): Promise<void> {
  let lostAt = performance.now();
  let last: unknown;
  for (;;) {
    const began = performance.now();
    try {
      if (await open()) return;
      last = undefined;
    } catch (error) {
      const patience = patienceWith(error);
      // The Hub has ended, or the next one is there.
      if (patience !== patienceWith(last)) lostAt = began;
      last = error;
      const now = performance.now();
      if (error instanceof AppServerConnectionError) lostAt += now - began;
      if (!isWanted() || now - lostAt > patience) throw error;
      await sleep(defaults.client.revivePollMs);
    }
  }
}

function patienceWith(error: unknown): number {
  if (error instanceof HubUnavailableError) return defaults.client.hubStartMs;
  return error instanceof AppServerConnectionError ? defaults.client.reviveMs : Number.NEGATIVE_INFINITY;
}
