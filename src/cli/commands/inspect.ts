import { proveServer, ServerNotProvenError } from '../../client/index.ts';
import type { ProofRole } from '../../protocol/index.ts';
import { dashboardToken, knownPageToken } from '../../supervise/index.ts';
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
  return withHubOf(context, path, async ({ hub, lock }) => {
    const record = await hub.byWorkspace(path, { signal });
    if (options['open'] === true || options['print-url'] === true) {
      const page = actorsPage(record, context.home, lock.apiBaseUrl);
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
    // An earlier version of the Hub has no token of its own for pages.
    await showPage(context, { address: new URL('/', apiBaseUrl).href, token: knownPageToken(context.home) ?? token });
    return exitCodes.ok.code;
  });

interface Served {
  readonly canonicalWorkspacePath: string;
  readonly endpoints: Readonly<Record<string, string>>;
  /** Path on the Hub; null where the Hub serves none. */
  readonly page: string | null;
}

type ProvenPage = PageAddress & { readonly role: ProofRole };

/** Where the page of a workspace shows its actors. @throws CliError when no agent server runs, or has no dashboard */
function actorsPage({ endpoints, canonicalWorkspacePath, page }: Served, home: string, hub: string): ProvenPage {
  const token = knownPageToken(home);
  const isDown = endpoints['appServerWebSocket'] === undefined;
  // The Hub shows the report and the history of a workspace that is down.
  if (isDown && page !== null && token !== undefined) return { role: 'hub', address: new URL(page, hub).href, token };
  if (isDown) {
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
  const at = '/actors';
  if (page !== null && token !== undefined) return { role: 'hub', address: new URL(page, hub).href, token, at };
  return { role: 'dashboard', address, token: dashboardToken(home, canonicalWorkspacePath), at };
}

/** The address carries a token: it is not handed to a browser while another program serves it. @throws CliError */
async function requireProof({ role, address, token = '' }: ProvenPage, signal: AbortSignal): Promise<void> {
  try {
    await proveServer({ role, url: new URL(address).origin, token, signal });
  } catch (error) {
    if (!(error instanceof ServerNotProvenError)) throw error;
    throw new CliError('failure', error.message, 'See which program listens there: ss -ltnp');
  }
}
