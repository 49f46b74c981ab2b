import { type HubClient, HubRequestError, type RecordAnswer } from '../../client/index.ts';
import { endByHand, noteEnd } from '../by-hand.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { clientInfo, during, withHubOf } from '../hub.ts';
import { recordLines } from '../render.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio restart [workspace]`: a server that was started by hand is replaced by one that the Hub manages. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const path = workspacePath(context, context.argument);
  const record = await withHubOf(context, path, ({ hub }) =>
    during(context, `Restarting the agent server of ${path}`, () => restart(context, hub, path)),
  );
  if (output.json) output.document(record);
  else for (const line of recordLines(record, output.colors)) output.line(line);
  return exitCodes.ok.code;
}

async function restart(context: CommandContext, hub: HubClient, workspacePath: string): Promise<RecordAnswer> {
  const { signal } = context;
  try {
    return await hub.restart({ workspacePath }, { signal });
  } catch (error) {
    if (!(error instanceof HubRequestError) || error.code !== 'workspaceLocked') throw error;
    await endByHand(context, workspacePath);
    await noteEnd(hub, workspacePath, signal);
    return hub.ensure({ workspacePath, client: clientInfo }, { signal });
  }
}
