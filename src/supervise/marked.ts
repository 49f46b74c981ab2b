import { setTimeout as sleep } from 'node:timers/promises';
import { defaults } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { identityOf } from './identity.ts';
import { carries, scanProcesses } from './scan.ts';
import { signalProcess } from './signals.ts';

/**
 * Ends every process that carries `marker`, or one below it, by SIGKILL, until none is found: for a Hub that crashed after
 * it had written down its intention to spawn and before it knew whom, and for what an agent server that crashed has left.
 * Only Linux shows environments; elsewhere nothing is found.
 *
 * @returns how many were ended
 */
export async function killMarked(marker: string): Promise<number> {
  const deadline = monotonicMs() + defaults.supervise.killVerifyMs;
  const ended = new Set<number>();
  while (monotonicMs() < deadline) {
    const carriers = (await scanProcesses()).filter((entry) => !entry.zombie && carries(entry, marker));
    if (carriers.length === 0) break;
    for (const entry of carriers) {
      signalProcess(identityOf(entry), 'SIGKILL');
      ended.add(entry.pid);
    }
    await sleep(5);
  }
  return ended.size;
}
