import { type AnyRoute, HttpError, json, type Method, type Reply, type RequestContext } from '../http/index.ts';
import { defaults } from '../protocol/index.ts';
import { Answers } from './answers.ts';
import { Approvals } from './approvals.ts';
import { Completions } from './completions.ts';
import { chatError, explained } from './errors.ts';
import { chatGuard } from './guard.ts';
import { healthOf } from './health.ts';
import { McpEndpoint } from './mcp.ts';
import { Models } from './models.ts';
import { type ChatOptions, timingOf } from './options.ts';
import { Replays } from './replays.ts';
import { Responses } from './responses/responses.ts';
import { ChatTurns } from './turns.ts';

const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const unknownUrl = (): never => {
  throw chatError(
    'notFound',
    'There is no such path here. This server answers POST /v1/chat/completions and POST /v1/responses.',
  );
};

/** MCP without sessions. */
const postOnly = (): never => {
  const { status, code, message } = chatError('methodNotAllowed', 'Send MCP requests with POST.');
  throw new HttpError(status, code, message, undefined, [['allow', 'POST']]);
};

function route(
  method: Method,
  path: string,
  handler: (context: RequestContext) => Reply | Promise<Reply>,
  more: Pick<AnyRoute, 'bodyLimit' | 'deadlineMs'> = {},
): AnyRoute {
  return { method, path, handler, ...more };
}

/**
 * Every route below `/v1/` (specification §4.1). The server that carries them passes on `chatGuard`, so that paths and methods
 * without a route are guarded too, and `chatErrorBody` (`openChatServer` does). A server that forgets the guard is still not an open
 * door: each route asks for the key itself.
 */
export function chatRoutes(options: ChatOptions): AnyRoute[] {
  const { runtime, api, logger, requests, responses } = options;
  const timing = timingOf(options);
  const turns = new ChatTurns({ runtime, responses, api, logger, timing });
  const models = new Models(runtime);
  const replays = new Replays({ requests, turns, timing, logger });
  const parts = { turns, models, replays, answers: new Answers(options, turns) };
  const completions = new Completions(parts, api.SessionFromUser);
  const stored = new Responses({ ...parts, runtime, responses });
  const mcp = new McpEndpoint({ responses: stored, store: responses, heartbeatMs: timing.heartbeatMs });

  const listed = () =>
    models.list().catch((error: unknown) => {
      throw explained(error);
    });
  async function findModel({ params }: RequestContext): Promise<Reply> {
    const found = (await listed()).find(({ id }) => id === params['*']);
    if (!found) throw chatError('modelNotFound', 'There is no such model here; GET /v1/models lists them.');
    return json(200, found);
  }

  const routes = [
    route('POST', '/v1/chat/completions', completions.handle, ofTurn),
    ...(api.Responses ? responseRoutes(stored) : []),
    route('POST', '/v1/mcp', mcp.post, ofTurn),
    ...(['GET', 'DELETE'] as const).map((method) => route(method, '/v1/mcp', postOnly)),
    route('GET', '/v1/health', healthOf(options)),
    route('GET', '/v1/models', async () => json(200, { object: 'list', data: await listed() })),
    // Ids may contain slashes, plain or percent-encoded.
    route('GET', '/v1/models/*', findModel),
    ...(api.ApprovalMode === 'interactive' ? approvalRoutes(new Approvals(runtime, turns)) : []),
    ...methods.flatMap((method) => [route(method, '/v1/*', unknownUrl), route(method, '/v1', unknownUrl)]),
  ];
  const auth = chatGuard(options);
  return routes.map((each) => ({ ...each, auth }));
}

/** No deadline, because a turn may take hours and the answer sends heartbeats to the client. */
const ofTurn = { bodyLimit: defaults.http.chatBodyBytes, deadlineMs: 0 };

function responseRoutes(responses: Responses): AnyRoute[] {
  return [
    route('POST', '/v1/responses', responses.create, ofTurn),
    route('GET', '/v1/responses/:id', responses.read, ofTurn),
    route('DELETE', '/v1/responses/:id', responses.delete),
    route('POST', '/v1/responses/:id/cancel', responses.cancel),
  ];
}

function approvalRoutes(approvals: Approvals): AnyRoute[] {
  return [route('GET', '/v1/approvals', approvals.list), route('POST', '/v1/approvals/:id', approvals.decide)];
}
