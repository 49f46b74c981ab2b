import type { Connection } from '../../client/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHub } from '../hub.ts';
import { openPage, pageUrl } from '../page.ts';
import { recordLines } from '../render.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio inspect [workspace]`: a record, or the statechart page. */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output, signal } = context;
  return withHub(context, async (connection) => {
    if (argument !== undefined) {
      const record = await connection.hub.byWorkspace(workspacePath(context, argument), { signal });
      if (output.json) output.document(record);
      else for (const line of recordLines(record, output.colors)) output.line(line);
      if (options['open'] !== true) return exitCodes.ok.code;
    }
    await showPage(context, connection);
    return exitCodes.ok.code;
  });
}

/** The token is shown to a person at a terminal and to who asks for it; a log or a pipe gets the bare address. */
async function showPage({ home, options, output }: CommandContext, { lock }: Connection): Promise<void> {
  const withToken = pageUrl(lock.apiBaseUrl, lock.token);
  if (options['print-url'] === true) {
    if (output.json) output.document({ url: withToken });
    else output.line(withToken);
    return;
  }
  if (output.json && options['open'] !== true) return output.document({ url: pageUrl(lock.apiBaseUrl) });
  output.line(output.isTTY ? withToken : pageUrl(lock.apiBaseUrl));
  if (!output.isTTY && options['open'] !== true) {
    return output.note(
      'Not a terminal: nothing was opened. Use --open, or --print-url for the address with its token.',
    );
  }
  if (!(await openPage(home, withToken))) output.warn('No browser could be opened: open the address above yourself.');
}
