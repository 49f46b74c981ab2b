import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { type AppServerClient, JsonRpcError } from '../../client/index.ts';
import { type AnyRoute, json, type Reply, type RequestContext } from '../../http/index.ts';
import { isWithin } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import {
  DelegatedRequest,
  type DelegationScope,
  rpcErrors,
  Thread,
  TokenRequest,
  TokenRevocation,
} from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import { alreadyDecided, answerRequest, type Inbox } from '../inbox/index.ts';
import { unavailable } from '../pages/index.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import { type Delegate, requireScope, type ScopedTokens } from '../scoped-tokens.ts';
import type { Workspace } from '../workspace.ts';
import type { Bind } from './bind.ts';
import { withServer } from './with-server.ts';

export interface DelegatedRoutesOptions {
  readonly registry: Registry;
  readonly inbox: Inbox;
  readonly tokens: ScopedTokens;
  readonly isStopping: () => boolean;
  readonly logger: Logger;
}

/** Turns of a conversation that are read, and characters of each text. */
const turnLimit = 5;
const maxChars = 20_000;
/** Pages of turns in which a prompt is searched. */
const maxPages = 50;
const pageTurns = 20;

const ThreadAnswer = v.looseObject({ thread: Thread });
const ThreadsAnswer = v.looseObject({ data: v.array(Thread) });
const StartedAnswer = v.looseObject({ thread: v.looseObject({ id: v.string() }) });

/** Routes of scoped tokens: a program leads workspaces without the token of the Hub or of an agent server. */
export function delegatedRoutes(bind: Bind, options: DelegatedRoutesOptions): AnyRoute[] {
  const { tokens } = options;
  const actions = new DelegatedActions(options);
  return [
    bind(hubRoutes.issueToken, (context) => issue(options, context)),
    bind(hubRoutes.listTokens, () => json(200, tokens.list(), [['cache-control', 'no-store']])),
    bind(hubRoutes.revokeToken, (context) => revoke(options, context)),
    {
      ...bind(hubRoutes.delegate, async (context: RequestContext<Delegate>) =>
        json(200, await actions.perform(context)),
      ),
      auth: tokens.auth,
    },
  ];
}

async function issue(
  { registry, tokens, logger }: DelegatedRoutesOptions,
  context: RequestContext<never>,
): Promise<Reply> {
  const request = await context.json(TokenRequest);
  const { cwd, marker } = request;
  const own = [...registry.workspaces.values()].filter(
    ({ path, facts }) =>
      (cwd !== undefined && isWithin(path, cwd)) || (marker !== undefined && facts.marker === marker),
  );
  const issued = await tokens.issue(
    request,
    own.map(({ path, facts }) => ({ id: facts.id, path })),
  );
  const { tokenId, scopes } = issued;
  logger.info('a scoped token was issued', { holder: request.name, tokenId, scopes });
  return json(200, issued, [['cache-control', 'no-store']]);
}

async function revoke({ tokens, logger }: DelegatedRoutesOptions, context: RequestContext<never>): Promise<Reply> {
  const { tokenId } = await context.json(TokenRevocation);
  const revoked = await tokens.revoke(tokenId);
  logger.info('a scoped token was revoked', { holder: revoked.name, tokenId });
  return json(200, revoked);
}

/** Actions of the holder of a scoped token. */
class DelegatedActions {
  readonly #options: DelegatedRoutesOptions;

  constructor(options: DelegatedRoutesOptions) {
    this.#options = options;
  }

  async perform(context: RequestContext<Delegate>): Promise<unknown> {
    const { registry, inbox, isStopping } = this.#options;
    const request = await context.json(DelegatedRequest);
    const delegate = context.principal;
    requireScope(delegate, scopeOf(request));
    switch (request.do) {
      case 'list':
        return registry.list().map(({ canonicalWorkspacePath, displayName, state, health, model, page }) => ({
          workspaceId: page?.split('/')[2] ?? null,
          ...{ path: canonicalWorkspacePath, displayName, state, health, model: model?.name ?? null },
        }));
      case 'start': {
        if (isStopping()) throw hubError('hubStopping', 'The Hub is shutting down.');
        const { workspacePath } = request;
        await registry.ensure({ workspacePath, startIfMissing: true, apiProxy: undefined });
        const { page, state, displayName } = await registry.inspect(workspacePath);
        return { workspaceId: page?.split('/')[2] ?? null, displayName, state };
      }
      case 'prompt':
        return this.#prompt(delegate, request, context.signal);
      case 'read':
        return this.#read(delegate, request, context.signal);
      case 'result':
        return this.#result(delegate, request, context.signal);
      case 'cancel':
        return this.#cancel(delegate, request, context.signal);
      case 'requests':
        return inbox.list().filter(({ workspaceId }) => !delegate.ownWorkspaceIds.includes(workspaceId));
      case 'approve':
        return this.#approve(delegate, request, context);
    }
  }

  #workspaceOf(id: string): Workspace {
    const workspace = this.#options.registry.byId(id);
    if (!workspace) throw hubError('notFound', 'There is no such workspace.');
    return workspace;
  }

  async #prompt(delegate: Delegate, request: Extract<DelegatedRequest, { do: 'prompt' }>, signal: AbortSignal) {
    const { workspaceId, text } = request;
    return withServer(this.#workspaceOf(workspaceId), signal, clientOf(delegate.name), async (server) => {
      const threadId = request.threadId ?? v.parse(StartedAnswer, await server.request('thread/start', {})).thread.id;
      const messageId = randomUUID();
      const sender = delegate.name;
      await server.request('turn/enqueue', { threadId, input: [{ type: 'text', text }], sender, messageId });
      return { workspaceId, threadId, messageId };
    });
  }

  /** The turn of one prompt, or its place in the line. */
  async #result(delegate: Delegate, request: OfMessage, signal: AbortSignal) {
    return withServer(this.#workspaceOf(request.workspaceId), signal, clientOf(delegate.name), async (server) => {
      const { threadId, messageId } = request;
      const { turn, queued } = await messageIn(server, request);
      const { startedAt, completedAt } = turn ?? {};
      const createdAt = queued?.createdAt ?? startedAt;
      const place = { threadId, messageId, createdAt, updatedAt: completedAt ?? createdAt };
      return turn ? { ...place, ...shownTurn(turn) } : { ...place, status: 'queued' };
    });
  }

  /** Ends the turn of one prompt, or takes the prompt out of the line. An ended turn stays. */
  async #cancel(delegate: Delegate, request: OfMessage, signal: AbortSignal) {
    return withServer(this.#workspaceOf(request.workspaceId), signal, clientOf(delegate.name), async (server) => {
      const { threadId, messageId } = request;
      const { turn, queued } = await messageIn(server, request);
      if (queued) await server.request('turn/queue/remove', { threadId, queuedInputId: queued.id });
      else if (turn && turn.completedAt === undefined) {
        await server.request('turn/interrupt', { threadId, turnId: turn.id }).catch((error: unknown) => {
          // The turn has ended in the meantime.
          if (!(error instanceof JsonRpcError) || error.code !== rpcErrors.turnNotRunning.code) throw error;
        });
      }
      return { threadId, messageId };
    });
  }

  async #read(
    delegate: Delegate,
    { workspaceId, threadId }: Extract<DelegatedRequest, { do: 'read' }>,
    signal: AbortSignal,
  ) {
    return withServer(this.#workspaceOf(workspaceId), signal, clientOf(delegate.name), async (server) => {
      if (threadId === undefined) {
        const { data } = v.parse(ThreadsAnswer, await server.request('thread/list', {}));
        return {
          threads: data.slice(0, 100).map(({ id, displayName, lastActiveAt }) => ({ id, displayName, lastActiveAt })),
        };
      }
      const answer = await server.request('thread/read', { threadId, includeTurns: true, turnLimit });
      const { thread } = v.parse(ThreadAnswer, answer);
      return { threadId, turns: (thread.turns ?? []).map(shownTurn) };
    });
  }

  async #approve(
    delegate: Delegate,
    request: Extract<DelegatedRequest, { do: 'approve' }>,
    context: RequestContext<Delegate>,
  ) {
    const { inbox, logger } = this.#options;
    const { workspaceId, requestId, decision } = request;
    if (delegate.ownWorkspaceIds.includes(workspaceId))
      throw hubError('scopeMissing', 'An agent cannot decide about a request of its own workspace.', {
        scope: 'approve',
      });
    inbox.requireOpen(workspaceId, requestId);
    const workspace = this.#workspaceOf(workspaceId);
    const endpoint = workspace.facts.endpoints['appServerWebSocket'];
    if (endpoint === undefined) throw unavailable(workspace);
    const about = { id: workspaceId, path: workspace.path, secrets: workspace.facts.secrets };
    const client = clientOf(delegate.name);
    const sender = { client, token: delegate.name, remoteAddress: context.remoteAddress ?? null };
    const outcome = await inbox
      .carry(about, requestId, sender, () => answerRequest(endpoint, requestId, { decision, client }, context.signal))
      .catch((): never => {
        throw unavailable(workspace);
      });
    if (outcome.kind === 'unknown') throw hubError('notFound', 'No such request waits for a decision.');
    if (outcome.kind === 'invalid') throw hubError('invalidRequest', outcome.message);
    if (outcome.kind === 'alreadyDecided') throw alreadyDecided(outcome.made);
    logger.info('a request of the inbox was decided', {
      ...{ workspacePath: workspace.path, requestId, decision, by: client },
    });
    return outcome.made;
  }
}

type OfMessage = Extract<DelegatedRequest, { do: 'result' | 'cancel' }>;

const scopeOf = ({ do: action }: DelegatedRequest): DelegationScope => {
  if (action === 'requests') return 'approve';
  if (action === 'result') return 'read';
  return action === 'cancel' ? 'prompt' : action;
};

/** Turn of a message, or the message in the queue. @throws HttpError `notFound` */
async function messageIn(server: AppServerClient, { threadId, messageId }: OfMessage) {
  let beforeTurnId: string | undefined;
  for (let pages = 0; pages < maxPages; pages += 1) {
    const params = { threadId, includeTurns: true, turnLimit: pageTurns, ...(beforeTurnId && { beforeTurnId }) };
    const { thread } = v.parse(ThreadAnswer, await server.request('thread/read', params));
    const queued = thread.queuedInputs?.find((each) => each.messageId === messageId);
    const turns = thread.turns ?? [];
    const turn = turns.find(({ items }) =>
      items.some((item) => item.type === 'userMessage' && item.messageId === messageId),
    );
    if (turn || queued) return { turn, queued };
    if (turns.length < pageTurns) break;
    beforeTurnId = turns[0]?.id;
  }
  throw hubError('notFound', 'There is no such prompt in the conversation.');
}

/** Name of the holder as a client of an agent server, and in `decidedBy`. */
const clientOf = (name: string): string => `agent ${name}`;

type Turn = NonNullable<v.InferOutput<typeof Thread>['turns']>[number];

/** Prompt, answer and state of a turn. */
function shownTurn({ id, status, items, error }: Turn) {
  const texts = (type: 'agentMessage') =>
    items.flatMap((item) => (item.type === type && !item.discarded ? [item.text] : []));
  const asked = items.flatMap((item) => (item.type === 'userMessage' ? item.input : []));
  return {
    ...{ turnId: id, status },
    prompt: asked
      .flatMap((part) => (part.type === 'text' ? [part.text] : []))
      .join('\n')
      .slice(0, maxChars),
    answer: texts('agentMessage').join('\n').slice(-maxChars),
    calls: items.flatMap((item) => (item.type === 'toolCall' ? [item.tool] : [])),
    ...(error && { error: error.message }),
  };
}
