import { isAtRest } from '../../../machines/index.ts';
import type { AnyRoute, Reply, RequestContext } from '../../http/index.ts';
import { json } from '../../http/index.ts';
import { messageOf } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { InboxAnswer, placeOf } from '../../protocol/index.ts';
import type { HubCaller } from '../auth.ts';
import { hubError } from '../errors.ts';
import { alreadyDecided, answerRequest, type DecisionLog, type Inbox } from '../inbox/index.ts';
import { unavailable } from '../pages/index.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Workspace } from '../workspace.ts';
import type { Bind } from './bind.ts';

export interface InboxRoutesOptions {
  readonly registry: Registry;
  readonly inbox: Inbox;
  readonly decisions: DecisionLog;
  readonly logger: Logger;
}

/** Programs by the token they have, where a client does not name itself. */
const clients: Readonly<Record<HubCaller, string>> = { owner: 'api', page: 'oratorio-page', host: 'host' };

/** Names of the tokens in the record of decisions. */
const tokens: Readonly<Record<HubCaller, string>> = { owner: 'hub', page: 'page', host: 'host' };

/** Whether the agent server is away and the next one follows, or is being looked for. */
function isStartingAgain(workspace: Workspace): boolean {
  const snapshot = workspace.snapshot();
  return !isAtRest(snapshot) && !snapshot.matches('running') && !snapshot.matches('unhealthy');
}

const defaultHistory = 100;
const maxHistory = 1_000;

/** Lists the requests of all workspaces, and takes answers. The agent server that asks decides which was first. */
export function inboxRoutes(bind: Bind, { registry, inbox, decisions, logger }: InboxRoutesOptions): AnyRoute[] {
  async function answer(context: RequestContext<never>): Promise<Reply> {
    const { workspaceId = '', requestId = '' } = context.params;
    const caller: HubCaller = context.principal;
    const { client = clients[caller], ...given } = await context.json(InboxAnswer);
    const decision = given.action ?? given.decision;
    const workspace = registry.byId(workspaceId);
    // The first state of the next server names the requests that wait.
    if (workspace && isStartingAgain(workspace)) throw unavailable(workspace);
    inbox.requireOpen(workspaceId, requestId);
    const endpoint = workspace?.facts.endpoints['appServerWebSocket'];
    if (!workspace) throw hubError('notFound', 'There is no such workspace.');
    if (endpoint === undefined) throw unavailable(workspace);
    const about = { id: workspaceId, path: workspace.path, secrets: workspace.facts.secrets };
    const sender = { client, token: tokens[caller], remoteAddress: context.remoteAddress ?? null };
    const outcome = await inbox
      .carry(about, requestId, sender, () => answerRequest(endpoint, requestId, { ...given, client }, context.signal))
      .catch((error: unknown): never => {
        logger.warn('an answer of the inbox had no reply from its agent server', {
          ...{ workspacePath: workspace.path, requestId },
          reason: messageOf(error),
        });
        throw unavailable(workspace);
      });
    if (outcome.kind === 'unknown') {
      // The request has ended, and the report of its end is under way.
      inbox.requireOpen(workspaceId, requestId);
      throw hubError('notFound', 'No such request waits for a decision.');
    }
    if (outcome.kind === 'invalid') throw hubError('invalidRequest', outcome.message);
    if (outcome.kind === 'alreadyDecided') throw alreadyDecided(outcome.made);
    logger.info('a request of the inbox was decided', {
      ...{ workspacePath: workspace.path, requestId, decision },
      by: placeOf(client),
      remoteAddress: context.remoteAddress,
    });
    return json(200, outcome.made);
  }

  async function history({ query }: RequestContext<never>): Promise<Reply> {
    const limit = Number(query.get('limit') ?? defaultHistory);
    if (!Number.isInteger(limit) || limit < 1 || limit > maxHistory)
      throw hubError('invalidRequest', `limit must be a whole number from 1 to ${maxHistory}.`);
    return json(200, await decisions.read(limit));
  }

  return [
    bind(hubRoutes.listInboxHistory, history),
    bind(hubRoutes.listInbox, () => json(200, inbox.list())),
    bind(hubRoutes.answerInbox, answer),
  ];
}
