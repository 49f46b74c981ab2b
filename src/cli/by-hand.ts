/** Ends agent servers that no Hub manages, on the user's command, when their lock proves that they are the user's. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { HubClient, RecordAnswer } from '../client/index.ts';
import { defaults } from '../protocol/index.ts';
import {
  isAlive,
  lockHolder,
  orderHandOver,
  probeLock,
  readAppServer,
  readHolder,
  workspaceFiles,
} from '../supervise/index.ts';
import type { CommandContext } from './command.ts';
import { CliError } from './errors.ts';
import { handOverMs } from './hand-over.ts';
import { canonical } from './workspace.ts';

const pollMs = 50;

/** Whether a process holds the lock of a workspace, even one that the Hub does not know. */
export const isHeld = ({ home }: CommandContext, workspace: string): boolean =>
  probeLock(workspaceFiles(home, canonical(workspace)).mutexPath) === 'held';

/** Whether a live server of this workspace is not managed by the Hub. */
export const runsByHand = ({ state, startedByHub, pid }: RecordAnswer): boolean =>
  !startedByHub && pid !== null && (state === 'running' || state === 'unhealthy');

/**
 * Ends the agent server that holds the lock of a workspace: SIGTERM, then waits until the lock is free. The process must
 * have published itself in this user's home, and hold the lock, where the kernel reports the holder.
 *
 * @throws CliError workspaceLocked for another process, and for one that does not end
 */
export async function endByHand(context: CommandContext, workspace: string, endsTurns = false): Promise<void> {
  const { home, signal } = context;
  const files = workspaceFiles(home, canonical(workspace));
  if (probeLock(files.mutexPath) !== 'held') return;
  const read = readAppServer(files);
  const holder = lockHolder(files.mutexPath);
  const published = read.kind === 'ok' && isAlive(read.value.identity) === 'alive' ? read.value.pid : null;
  if (read.kind !== 'ok' || published === null || (holder !== null && holder !== published)) {
    throw notOurs(workspace, holder ?? readHolder(files).pid, files.mutexPath);
  }
  const { gracefulStopMs, killVerifyMs } = defaults.supervise;
  const withinMs = endsTurns ? 0 : handOverMs(context, canonical(workspace));
  const { incarnation } = read.value;
  orderHandOver(home, canonical(workspace), { incarnation, reason: 'stop', withinMs, endsTurns });
  process.kill(published, 'SIGTERM');
  const deadline = performance.now() + withinMs + gracefulStopMs + killVerifyMs;
  while (probeLock(files.mutexPath) === 'held') {
    if (performance.now() > deadline) {
      const what = `Process ${published}, which serves ${workspace}, does not end after SIGTERM.`;
      throw new CliError('workspaceLocked', what, `End it: kill -9 ${published}`, 'workspaceLocked');
    }
    await sleep(pollMs, undefined, { signal });
  }
}

function notOurs(workspace: string, pid: number | null, mutexPath: string): CliError {
  const who = pid === null ? 'A process' : `Process ${pid}`;
  const hint = pid === null ? `Find it: fuser ${mutexPath}` : `Stop it where it was started, or end it: kill ${pid}`;
  const what = `${who} holds the lock of ${workspace}, and has not published itself as your agent server.`;
  return new CliError('workspaceLocked', what, hint, 'workspaceLocked');
}

/** Asks the Hub to note that the server is gone; waits until its record shows this. */
export async function noteEnd(hub: HubClient, workspace: string, signal: AbortSignal): Promise<RecordAnswer> {
  const deadline = performance.now() + defaults.supervise.killVerifyMs;
  for (;;) {
    const record = await hub.stop(workspace, { signal });
    if (!runsByHand(record) || performance.now() > deadline) return record;
    await sleep(pollMs, undefined, { signal });
  }
}
