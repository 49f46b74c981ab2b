import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AppServerLock } from '../protocol/index.ts';
import {
  isAlive,
  lockHolder,
  probeLock,
  readAppServer,
  readHolder,
  runsThisProgram,
  type WorkspaceFiles,
} from '../supervise/index.ts';

/** How long the holder of the workspace lock may take to publish its address: it may be starting. */
const publishDeadlineMs = 10_000;
const publishPollMs = 25;

/** The holder of the workspace lock publishes in another home, or does not publish. */
export interface UnpublishedHolder {
  /** From the kernel, else as the workspace's own file names it. */
  readonly pid: number | null;
  /** End of a sentence: “Process 7 owns the workspace lock” + `why`. */
  readonly why: string;
}

/** Refusal to use a workspace that another process owns. */
export const ownedMessage = ({ pid, why }: UnpublishedHolder): string =>
  `${pid === null ? 'A live process' : `Process ${pid}`} owns the workspace lock ${why}.`;

/** The holder of a held lock that has published no address in this home; null while it may still be starting. */
function unpublishedHolder(files: WorkspaceFiles): UnpublishedHolder | null {
  const { pid: named, problem } = readHolder(files);
  const holder = lockHolder(files.mutexPath);
  const pid = holder ?? named;
  if (named !== null)
    return { pid, why: 'and does not publish its address in this home; stop it where it was started' };
  if (problem !== null) return { pid, why: `and cannot be identified: ${problem}` };
  if (holder === null || runsThisProgram(holder)) return null;
  return { pid, why: 'and is not an agent server' };
}

const silent = ({ mutexPath }: WorkspaceFiles): UnpublishedHolder => ({
  pid: lockHolder(mutexPath),
  why: 'and does not publish an address',
});

/** The process of another home, or of another program, that holds the workspace lock now. Null: none, or one of this home. */
export function foreignHolder(files: WorkspaceFiles): UnpublishedHolder | null {
  if (probeLock(files.mutexPath) !== 'held') return null;
  const read = readAppServer(files);
  if (read.kind === 'ok' && isAlive(read.value.identity) !== 'gone') return null;
  return unpublishedHolder(files) ?? silent(files);
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
    const read = readAppServer(files);
    if (read.kind === 'ok' && isAlive(read.value.identity) !== 'gone') return read.value;
    if (probeLock(files.mutexPath) === 'free') return 'free';
    const holder = unpublishedHolder(files);
    if (holder) return holder;
    await sleep(publishPollMs, undefined, { signal });
  }
  return silent(files);
}

/** Size of a file in bytes; 0 when there is no such file. */
export function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}
