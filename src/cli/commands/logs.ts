import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHubOf } from '../hub.ts';
import { workspacePath } from '../workspace.ts';

const pollMs = 500;

/**
 * Returns the part of `next`, a later tail of a log, that is new since `previous`. Without a shared part it returns all of
 * `next`, after a line that reports the gap.
 */
export function appended(previous: string, next: string): string {
  if (previous === '' || next === previous) return next === previous ? '' : next;
  if (next.startsWith(previous)) return next.slice(previous.length);
  // Both are tails of one text: the end of the earlier one is somewhere in the later one.
  const mark = previous.slice(-4_096);
  const at = next.lastIndexOf(mark);
  return at < 0 ? `\n… some output was missed …\n${next}` : next.slice(at + mark.length);
}

/** `oratorio logs [workspace]` */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const path = workspacePath(context, context.argument);
  const stream = options['stdout'] === true ? 'stdout' : 'stderr';
  return withHubOf(context, path, async ({ hub }) => {
    // Asks first whether there is such a workspace: its log would be just empty otherwise.
    await hub.byWorkspace(path, { signal });
    let seen = await hub.logs(path, { stream, signal });
    output.raw(seen);
    if (options['follow'] !== true) return exitCodes.ok.code;
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      const now = await hub.logs(path, { stream, signal }).catch((error: unknown) => {
        if (signal.aborted) return seen;
        throw error;
      });
      output.raw(appended(seen, now));
      seen = now;
    }
    return exitCodes.ok.code;
  });
}
