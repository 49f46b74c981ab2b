import { setTimeout as sleep } from 'node:timers/promises';
import { HubClient } from '../../client/index.ts';
import { defaults } from '../../protocol/index.ts';
import { readIdentity } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { findHub } from '../find-hub.ts';
import { handOverMs } from '../hand-over.ts';
import { during } from '../hub.ts';

/** Longer than a Hub may take to end its agent servers by force, after the time for their turns. */
const endMs = 2 * defaults.supervise.drainDeadlineMs;

/** `oratorio hub stop`: returns when the process is gone. Succeeds if no Hub is running. */
export async function run(context: CommandContext): Promise<number> {
  const { home, options, output, signal } = context;
  const found = await findHub(home, signal);
  if (found.kind === 'none') {
    if (output.json) output.document({ stopped: false, pid: null });
    output.line('No Hub is running.');
    return exitCodes.ok.code;
  }
  const { lock } = found;
  const detach = options['detach'] === true;
  await during(context, 'Stopping the Hub', async () => {
    await new HubClient(lock).shutdown({ detach, signal });
    await gone(lock.pid, endMs + handOverMs(context), signal);
  });
  if (output.json) output.document({ stopped: true, pid: lock.pid });
  output.line(
    `The Hub (process ${lock.pid}) has stopped. ${detach ? 'Its agent servers live on.' : 'So have its agent servers.'}`,
  );
  return exitCodes.ok.code;
}

async function gone(pid: number, withinMs: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (readIdentity(pid) !== 'gone') {
    if (performance.now() > deadline) {
      throw new CliError(
        'failure',
        `The Hub (process ${pid}) is still stopping after ${withinMs / 1000} s.`,
        'Check again: oratorio hub status',
      );
    }
    await sleep(25, undefined, { signal });
  }
}
