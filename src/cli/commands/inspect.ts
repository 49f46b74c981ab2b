import { proveServer, ServerNotProvenError } from '../../client/index.ts';
import { dashboardToken } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { withHub, withHubOf } from '../hub.ts';
import { type PageAddress, showPage } from '../page.ts';
import { recordLines } from '../render.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio inspect [workspace]`: a record, or the statechart page: of the Hub, or of the actors of one workspace. */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options, output, signal } = context;
  if (argument === undefined) return openHubPage(context);
  const path = workspacePath(context, argument);
  return withHubOf(context, path, async ({ hub }) => {
    const record = await hub.byWorkspace(path, { signal });
    if (options['open'] === true || options['print-url'] === true) {
      const page = actorsPage(record, context.home);
      await requireProof(page, signal);
      await showPage(context, page);
      return exitCodes.ok.code;
    }
    if (output.json) output.document(record);
    else for (const line of recordLines(record, output.colors)) output.line(line);
    return exitCodes.ok.code;
  });
}

const openHubPage = (context: CommandContext): Promise<number> =>
  withHub(context, async ({ lock: { apiBaseUrl, token } }) => {
    await showPage(context, { address: `${apiBaseUrl.replace(/\/+$/, '')}/`, token });
    return exitCodes.ok.code;
  });

interface Served {
  readonly canonicalWorkspacePath: string;
  readonly endpoints: Readonly<Record<string, string>>;
}

/** Where the agent server of a workspace shows its actors. @throws CliError when it does not run, or has no dashboard */
function actorsPage({ endpoints, canonicalWorkspacePath }: Served, home: string): PageAddress {
  if (endpoints['appServerWebSocket'] === undefined) {
    throw new CliError(
      'startFailed',
      `No agent server runs for ${canonicalWorkspacePath}.`,
      `Start it with: oratorio up ${quoted(canonicalWorkspacePath)}`,
    );
  }
  const address = endpoints['dashboard'];
  if (address === undefined) {
    const hint = 'Set DashBoard.Enabled to true in its config.json, then: oratorio restart';
    throw new CliError('startFailed', `The agent server of ${canonicalWorkspacePath} serves no dashboard.`, hint);
  }
  return { address, token: dashboardToken(home, canonicalWorkspacePath), at: '/actors' };
}

/** The address carries a token: it is not handed to a browser while another program serves it. @throws CliError */
async function requireProof({ address, token = '' }: PageAddress, signal: AbortSignal): Promise<void> {
  try {
    await proveServer({ role: 'dashboard', url: new URL(address).origin, token, signal });
  } catch (error) {
    if (!(error instanceof ServerNotProvenError)) throw error;
    throw new CliError('failure', error.message, 'See which program listens there: ss -ltnp');
  }
}
