import { existsSync } from 'node:fs';
import { endByHand, isHeld, noteEnd, runsByHand } from '../by-hand.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { during, withHub, withHubOf } from '../hub.ts';
import { hostNamed } from '../remote.ts';
import { inLine, recordLines } from '../render.ts';
import { remoteWorkspace, workspacePath } from '../workspace.ts';

/** `oratorio stop [workspace]`: a server that was started by hand ends, too. */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, signal } = context;
  const endTurns = options['end-turns'] === true;
  const remote = remoteWorkspace(context.argument);
  if (remote) {
    const stopped = await withHub(context, async ({ hub }) => {
      await hostNamed(hub, remote.host, context);
      return hub.onHost(remote.host, 'stop', remote.path, { signal });
    });
    if (output.json) output.document(stopped);
    else for (const line of recordLines(stopped, output.colors)) output.line(line);
    return exitCodes.ok.code;
  }
  const path = workspacePath(context, context.argument);
  const record = await withHubOf(context, path, ({ hub }) =>
    during(context, `Stopping the agent server of ${path}`, async () => {
      const stopped = await hub.stop(path, { endTurns, signal });
      if (!runsByHand(stopped) && !isHeld(context, path)) return stopped;
      await endByHand(context, path, endTurns);
      return noteEnd(hub, path, signal);
    }),
  );
  if (output.json) output.document(record);
  else for (const line of recordLines(record, output.colors)) output.line(line);
  if (!existsSync(path)) output.note(`· ${inLine(path)} does not exist, and is removed from the list.`);
  return exitCodes.ok.code;
}
