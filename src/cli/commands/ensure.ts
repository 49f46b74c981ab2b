import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { clientInfo, during, withHub } from '../hub.ts';
import { recordLines } from '../render.ts';
import { warnRestricted } from '../restricted.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio ensure [workspace]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, options, signal } = context;
  const path = workspacePath(context, context.argument);
  const startIfMissing = options['inspect-only'] !== true;
  const record = await withHub(
    context,
    ({ hub }) =>
      during(context, `Starting the agent server of ${path}`, () =>
        hub.ensure({ workspacePath: path, client: clientInfo, startIfMissing }, { signal }),
      ),
    true,
  );
  warnRestricted(output, record);
  if (output.json) output.document(record);
  else for (const line of recordLines(record, output.colors)) output.line(line);
  return exitCodes.ok.code;
}
