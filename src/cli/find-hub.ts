import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Discovery, discoverHub, type NoHubReason } from '../client/index.ts';
import { defaults } from '../protocol/index.ts';
import { lockHolder, probeLock } from '../supervise/index.ts';

/** Temporary reasons: the Hub is starting, or will publish its address again. */
const passing: readonly NoHubReason[] = ['noLockFile', 'invalidLockFile', 'notLoopback', 'processGone'];

const pollMs = 100;

/** Finds the Hub of `home`. Waits for a Hub that holds the home without an address; starts none. */
export async function findHub(home: string, signal: AbortSignal): Promise<Discovery> {
  const mutex = join(home, 'hub', 'hub.mutex');
  const deadline = performance.now() + defaults.client.hubStartMs;
  for (;;) {
    const found = await discoverHub({ home, signal });
    if (found.kind === 'found' || !passing.includes(found.why) || probeLock(mutex) !== 'held') return found;
    if (performance.now() > deadline) return { ...found, message: `${found.message} ${holds(mutex)}` };
    await sleep(pollMs, undefined, { signal });
  }
}

function holds(mutex: string): string {
  const pid = lockHolder(mutex);
  return `${pid === null ? 'A process' : `Process ${pid}`} holds ${mutex}.`;
}
