import type { RecordAnswer } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHub } from '../hub.ts';
import { columns } from '../render.ts';

function row({ state, pid, endpoints, canonicalWorkspacePath, restrictedSettings }: RecordAnswer): string[] {
  const { appServerWebSocket } = endpoints;
  const port =
    appServerWebSocket !== undefined && URL.canParse(appServerWebSocket) ? new URL(appServerWebSocket).port : '';
  const note = restrictedSettings.length === 0 ? '' : `  (restricted: ${restrictedSettings.join(', ')})`;
  return [state, pid === null ? '-' : String(pid), port || '-', canonicalWorkspacePath + note];
}

/** `oratorio list` */
export async function run(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  const records = await withHub(context, ({ hub }) => hub.list({ signal }));
  if (output.json) output.document(records);
  else if (records.length === 0) output.line('The Hub knows no workspace yet. Begin with: oratorio up <workspace>');
  else
    for (const line of columns(['STATE', 'PROCESS', 'PORT', 'WORKSPACE'], records.map(row), output.colors))
      output.line(line);
  return exitCodes.ok.code;
}
