import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { identityOf, isAlive } from './identity.ts';
import { carries, scanProcesses } from './scan.ts';
import { signalProcess } from './signals.ts';

/**
 * Ends every process that carries `marker`, or one below it, by SIGKILL, until none is left: for a Hub that crashed after
 * it had written down its intention to spawn and before it knew the process, and for remaining processes of a crashed agent server.
 * Only Linux shows environments; elsewhere nothing is found.
 *
 * @returns how many were ended
 */
export async function killMarked(marker: string): Promise<number> {
  const deadline = monotonicMs() + defaults.supervise.killVerifyMs;
  const ended = new Map<number, ProcessIdentity>();
  while (monotonicMs() < deadline) {
    const carriers = (await scanProcesses()).filter((entry) => !entry.zombie && carries(entry, marker));
    // A dying process no longer shows its environment, but its threads still hold its files and ports.
    const isDying = [...ended.values()].some((identity) => isAlive(identity) === 'alive');
    if (carriers.length === 0 && !isDying) break;
    for (const entry of carriers) {
      const identity = identityOf(entry);
      signalProcess(identity, 'SIGKILL');
      ended.set(entry.pid, identity);
    }
    await sleep(5);
  }
  return ended.size;
}
