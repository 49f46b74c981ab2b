import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHub } from '../hub.ts';
import { openPage, pageUrl } from '../page.ts';
import { recordLines } from '../render.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio inspect [workspace]`: a record, or the statechart page: of the Hub, or of the turns of one workspace. */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output, signal } = context;
  return withHub(context, async (connection) => {
    if (argument !== undefined) {
      const record = await connection.hub.byWorkspace(workspacePath(context, argument), { signal });
      if (options['open'] === true || options['print-url'] === true) {
        await showPage(context, turnsPage(record));
        return exitCodes.ok.code;
      }
      if (output.json) output.document(record);
      else for (const line of recordLines(record, output.colors)) output.line(line);
      return exitCodes.ok.code;
    }
    const { apiBaseUrl, token } = connection.lock;
    await showPage(context, { address: apiBaseUrl, token });
    return exitCodes.ok.code;
  });
}

interface PageAddress {
  readonly address: string;
  readonly token: string;
}

interface Served {
  readonly canonicalWorkspacePath: string;
  readonly endpoints: Readonly<Record<string, string>>;
}

/** Where the agent server of a workspace shows its turns and MCP servers. @throws CliError when it does not run */
function turnsPage({ endpoints, canonicalWorkspacePath }: Served): PageAddress {
  const appServerWebSocket = endpoints['appServerWebSocket'];
  if (appServerWebSocket === undefined) {
    throw new CliError(
      'startFailed',
      `No agent server runs for ${canonicalWorkspacePath}.`,
      'Start it with: oratorio up',
    );
  }
  const url = new URL(appServerWebSocket);
  return { address: `http://${url.host}`, token: url.searchParams.get('token') ?? '' };
}

/** The token is shown to a person at a terminal and to who asks for it; a log or a pipe gets the bare address. */
async function showPage({ home, options, output }: CommandContext, { address, token }: PageAddress): Promise<void> {
  const withToken = pageUrl(address, token);
  if (options['print-url'] === true) {
    if (output.json) output.document({ url: withToken });
    else output.line(withToken);
    return;
  }
  if (output.json && options['open'] !== true) return output.document({ url: pageUrl(address) });
  output.line(output.isTTY ? withToken : pageUrl(address));
  if (!output.isTTY && options['open'] !== true) {
    return output.note(
      'Not a terminal: nothing was opened. Use --open, or --print-url for the address with its token.',
    );
  }
  if (!(await openPage(home, withToken))) output.warn('No browser could be opened: open the address above yourself.');
}
