import { setTimeout as sleep } from 'node:timers/promises';
import { connectHub, discoverHub, HubClient } from '../../client/index.ts';
import { userHome } from '../../lib/index.ts';
import { defaults, type HubLock } from '../../protocol/index.ts';
import { readIdentity } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { serviceManager } from '../service/index.ts';
import { hubCommandAt } from './hub-command.ts';

/** Time limit for the end of a Hub. */
const endMs = 2 * defaults.supervise.drainDeadlineMs;
const pollMs = 25;

/** Whether a Hub is running, so that the update must replace it. */
export const isHubRunning = async ({ home, signal }: CommandContext): Promise<boolean> =>
  (await discoverHub({ home, signal })).kind === 'found';

/** Ends the running Hub, if any. Its agent servers and their turns continue. */
export async function detachHub({ home, signal }: CommandContext): Promise<void> {
  const found = await discoverHub({ home, signal });
  if (found.kind === 'found') await endHub(found.lock, signal, true);
}

/** Ends a Hub, and its agent servers unless they are detached. Resolves when the process has ended. */
export async function endHub(lock: HubLock, signal: AbortSignal, detach = false): Promise<void> {
  await new HubClient(lock).shutdown({ detach, signal });
  const deadline = performance.now() + endMs;
  while (readIdentity(lock.pid) !== 'gone') {
    if (performance.now() > deadline) {
      const problem = `The Hub (process ${lock.pid}) does not end.`;
      throw new CliError('failure', problem, 'Check again: oratorio hub status');
    }
    await sleep(pollMs, undefined, { signal });
  }
}

/**
 * Starts the Hub of a version: as a login service if it is installed as one, otherwise detached. The Hub adopts the running agent servers.
 * @param current path of the link `current`, which stays valid after an update
 * @returns version of the Hub that has started
 * @throws Error when no Hub starts
 */
export async function startHubOf(context: CommandContext, directory: string, current: string): Promise<string> {
  const { home, signal } = context;
  if (await restartService(context, current)) return (await connectHub({ home, signal })).status.hubVersion;
  const { status } = await connectHub({ home, signal, command: hubCommandAt(directory) });
  return status.hubVersion;
}

/** Restarts the Hub with the version at `current` if it is a login service. @returns whether it is a login service */
async function restartService({ home, env, signal }: CommandContext, current: string): Promise<boolean> {
  const manager = await serviceOf(env, signal);
  if (!manager) return false;
  const { command, args } = hubCommandAt(current);
  const variables = { ORATORIO_HOME: home, ...(env['PATH'] && { PATH: env['PATH'] }) };
  await manager.install({ command: [command, ...args], env: variables });
  return true;
}

async function serviceOf(env: CommandContext['env'], signal: AbortSignal) {
  try {
    const manager = serviceManager({ userHome: userHome(env), env, signal });
    return (await manager.status()).isInstalled ? manager : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CliError) return undefined;
    throw error;
  }
}
