import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { during, withHub } from '../hub.ts';
import { recordLines } from '../render.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio restart [workspace]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const path = workspacePath(context, context.argument);
  const record = await withHub(context, ({ hub }) =>
    during(context, `Restarting the agent server of ${path}`, () => hub.restart({ workspacePath: path }, { signal })),
  );
  if (output.json) output.document(record);
  else for (const line of recordLines(record, output.colors)) output.line(line);
  return exitCodes.ok.code;
}
