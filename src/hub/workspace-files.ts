import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AppServerLock } from '../protocol/index.ts';
import { isAlive, probeLock, readAppServer, readHolder, type WorkspaceFiles } from '../supervise/index.ts';

/** How long the holder of the workspace lock may take to publish its address: it may be starting. */
const publishDeadlineMs = 10_000;
const publishPollMs = 25;

/** The holder of the workspace lock publishes in another home, or does not publish. */
export interface UnpublishedHolder {
  readonly pid: number | null;
  /** End of a sentence: “Process 7 owns the workspace lock” + `why`. */
  readonly why: string;
}

/**
 * Waits until the holder of the workspace lock has published its address in this home, or has released the lock. A server
 * publishes in its home first: a workspace that names a live process unknown to this home is served from another home.
 *
 * @returns the published address; `free` when the lock is released
 */
export async function publishedLock(
  files: WorkspaceFiles,
  signal: AbortSignal,
): Promise<AppServerLock | 'free' | UnpublishedHolder> {
  for (let waited = 0; waited <= publishDeadlineMs; waited += publishPollMs) {
    const { pid, problem } = readHolder(files);
    const read = readAppServer(files);
    if (read.kind === 'ok' && isAlive(read.value.identity) !== 'gone') return read.value;
    if (probeLock(files.mutexPath) === 'free') return 'free';
    if (pid !== null)
      return { pid, why: 'and does not publish its address in this home; stop it where it was started' };
    if (problem !== null) return { pid, why: `and cannot be identified: ${problem}` };
    await sleep(publishPollMs, undefined, { signal });
  }
  return { pid: null, why: 'and does not publish an address' };
}

/** Size of a file in bytes; 0 when it does not exist. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
