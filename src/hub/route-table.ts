/**
 * Every route of the Hub API (specification §4.2, design §5) as plain data. The server takes its paths from here, and
 * `GET /v1/openapi.json` and `docs/hub-api.md` are made from it. Never here: a handler.
 */
import {
  AgentChosen,
  AgentInput,
  ApiProxyRequest,
  AppServerRecord,
  Chart,
  DashboardLink,
  DelegatedRequest,
  defaults,
  EnsureInput,
  HubErrorBody,
  type HubErrorCode,
  HubStatus,
  HubThreadList,
  InboxAnswer,
  InboxDecision,
  InboxHistoryEntry,
  InboxItem,
  InspectionRecord,
  IssuedToken,
  MadeWorkspace,
  ModelLogin,
  ModelLoginInput,
  ModelProvider,
  ModelTest,
  ModelTestInput,
  NotificationRequest,
  NotificationResponse,
  PageInfo,
  PlaceStatus,
  PushInfo,
  PushSubscribed,
  PushSubscribeInput,
  PushUnsubscribed,
  PushUnsubscribeInput,
  proofPaths,
  RecentEvent,
  RestartInput,
  ScopedToken,
  ServerExit,
  ServerProof,
  ServiceStatus,
  ShutdownResponse,
  StopInput,
  ThreadChange,
  ThreadChanged,
  TokenRequest,
  TokenRevocation,
  TrustAnswer,
  TrustRequest,
  WorkspaceInput,
} from '../protocol/index.ts';

/** Bodies by the name they have in the documents: requests as a client writes them, responses as it reads them. */
export const hubRequestSchemas = {
  ApiProxyRequest,
  EnsureInput,
  StopInput,
  RestartInput,
  NotificationRequest,
  InboxAnswer,
  ThreadChange,
  TokenRequest,
  TokenRevocation,
  DelegatedRequest,
  PushSubscribeInput,
  PushUnsubscribeInput,
  WorkspaceInput,
  AgentInput,
  ModelLoginInput,
  ModelTestInput,
  TrustAnswer,
} as const;
export const hubResponseSchemas = {
  HubStatus,
  ServerProof,
  ServiceStatus,
  AppServerRecord,
  ServerExit,
  ShutdownResponse,
  NotificationResponse,
  RecentEvent,
  PageInfo,
  DashboardLink,
  InboxItem,
  InboxDecision,
  InboxHistoryEntry,
  HubThreadList,
  ThreadChanged,
  IssuedToken,
  ScopedToken,
  PushInfo,
  PushSubscribed,
  PushUnsubscribed,
  MadeWorkspace,
  AgentChosen,
  ModelLogin,
  ModelProvider,
  ModelTest,
  PlaceStatus,
  TrustRequest,
  Chart,
  InspectionRecord,
  HubError: HubErrorBody,
} as const;

export interface HubQueryParameter {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  /** Allowed values; any text when absent. */
  readonly values?: readonly string[];
}

export type HubRouteResponse =
  | { readonly kind: 'json'; readonly schema: keyof typeof hubResponseSchemas; readonly array?: true }
  /** A JSON document whose shape is defined elsewhere. */
  | { readonly kind: 'document'; readonly description: string }
  | { readonly kind: 'text'; readonly contentType: string; readonly description: string }
  /** Server-Sent Events: of the Hub (specification §6.1), or of its actors. */
  | { readonly kind: 'events'; readonly of: 'hub' | 'inspection' };

export interface HubRoute {
  readonly method: 'GET' | 'POST';
  /** Path in the notation of OpenAPI: `/v1/things/{id}`. */
  readonly path: string;
  /** Requires `Authorization: Bearer <HUB_TOKEN>`. */
  readonly auth: boolean;
  /** The page token opens it, too. */
  readonly isForPage?: true;
  readonly summary: string;
  /** Parameters for the names in braces in the path. */
  readonly params?: readonly HubQueryParameter[];
  readonly query?: readonly HubQueryParameter[];
  readonly headers?: readonly HubQueryParameter[];
  readonly request?: keyof typeof hubRequestSchemas;
  readonly response: HubRouteResponse;
  /** Codes of this route's own; those every route can answer with are added by `errorCodesOf`. */
  readonly errors: readonly HubErrorCode[];
  /** Milliseconds until it is answered 503; 0 means never. */
  readonly deadlineMs: number;
}

const { requestDeadlineMs, longRequestDeadlineMs } = defaults.http;
/** The user's setting may change while the Hub runs: the deadline follows its highest value. */
const handOverDeadlineMs = longRequestDeadlineMs + defaults.supervise.maxHandOverMs;
const record = { kind: 'json', schema: 'AppServerRecord' } as const;
const path = { name: 'path', required: true, description: 'Path of the workspace; absolute, any spelling.' } as const;
const workspaceId = {
  name: 'workspaceId',
  required: true,
  description: 'Id of the workspace: the last part of `page` in its record.',
} as const;
const lastEventId = { name: 'lastEventId', required: false, description: 'Same as the header Last-Event-ID.' } as const;
const lastEventIdHeader = {
  name: 'Last-Event-ID',
  required: false,
  description: 'Id of the last event that was read: the stream resumes after it.',
} as const;

/** The route table, by operation. */
export const hubRoutes = {
  getStatus: {
    method: 'GET',
    path: '/v1/status',
    auth: false,
    summary: 'Who serves here: version, process, state directory, capabilities.',
    response: { kind: 'json', schema: 'HubStatus' },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  prove: {
    method: 'GET',
    path: proofPaths.hub,
    auth: false,
    summary: 'Proves that this Hub holds the token of a client, before the client sends it.',
    query: [
      { name: 'nonce', required: true, description: '16 to 64 random bytes in base64url; a new one for each request.' },
      { name: 'key', required: true, description: 'Id of the token: the first 22 characters of its key MAC.' },
    ],
    response: { kind: 'json', schema: 'ServerProof' },
    errors: ['invalidRequest', 'unauthorized'],
    deadlineMs: requestDeadlineMs,
  },
  shutDown: {
    method: 'POST',
    path: '/v1/shutdown',
    auth: true,
    summary: 'Stops the Hub and every agent server it manages. Answers at once; the event stream reports the rest.',
    query: [
      {
        name: 'mode',
        required: false,
        description: '`stop` (default) ends the agent servers; `detach` leaves them for the next Hub to adopt.',
        values: ['stop', 'detach'],
      },
    ],
    response: { kind: 'json', schema: 'ShutdownResponse' },
    errors: ['invalidRequest'],
    deadlineMs: requestDeadlineMs,
  },
  listPlaces: {
    method: 'GET',
    path: '/v1/places',
    auth: true,
    summary: 'Places where agent servers can run, and why one takes none now. Asks the container engine.',
    response: { kind: 'json', schema: 'PlaceStatus', array: true },
    errors: ['invalidConfig'],
    deadlineMs: longRequestDeadlineMs,
  },
  listAppServers: {
    method: 'GET',
    path: '/v1/appservers',
    auth: true,
    isForPage: true,
    summary: 'All live and known workspaces, sorted by canonical path.',
    response: { kind: 'json', schema: 'AppServerRecord', array: true },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  ensureAppServer: {
    method: 'POST',
    path: '/v1/appservers/ensure',
    auth: true,
    isForPage: true,
    summary: 'Finds or starts the agent server of a workspace and answers when it is ready. At most one ever exists.',
    request: 'EnsureInput',
    response: record,
    errors: [
      'invalidRequest',
      'scopeMissing',
      'invalidProxySidecar',
      'workspaceNotFound',
      'workspaceLocked',
      'appServerStartFailed',
      'appServerUnhealthy',
      'portUnavailable',
      'placeUnavailable',
      'imageMissing',
      'placeRefused',
      'invalidConfig',
    ],
    deadlineMs: longRequestDeadlineMs,
  },
  getAppServer: {
    method: 'GET',
    path: '/v1/appservers/by-workspace',
    auth: true,
    isForPage: true,
    summary: 'One workspace, inspected. Never starts a process.',
    query: [path],
    response: record,
    errors: ['workspaceNotFound'],
    deadlineMs: requestDeadlineMs,
  },
  stopAppServer: {
    method: 'POST',
    path: '/v1/appservers/stop',
    auth: true,
    isForPage: true,
    summary:
      'Stops the agent server of a workspace and answers when its process group is gone. A workspace whose directory is gone is not listed afterwards.',
    request: 'StopInput',
    response: record,
    errors: ['invalidRequest', 'workspaceNotFound', 'workspaceLocked'],
    deadlineMs: handOverDeadlineMs,
  },
  restartAppServer: {
    method: 'POST',
    path: '/v1/appservers/restart',
    auth: true,
    isForPage: true,
    summary: 'Restarts the agent server of a workspace, and answers when it is ready.',
    request: 'RestartInput',
    response: record,
    errors: [
      'invalidRequest',
      'scopeMissing',
      'invalidProxySidecar',
      'workspaceNotFound',
      'workspaceLocked',
      'appServerStartFailed',
      'appServerUnhealthy',
      'portUnavailable',
      'placeUnavailable',
      'imageMissing',
      'placeRefused',
      'invalidConfig',
    ],
    deadlineMs: handOverDeadlineMs,
  },
  makeWorkspace: {
    method: 'POST',
    path: '/v1/workspaces',
    auth: true,
    isForPage: true,
    summary: 'Turns a directory into a workspace, as `oratorio up --init` does, and sets its agent. Starts nothing.',
    request: 'WorkspaceInput',
    response: { kind: 'json', schema: 'MadeWorkspace' },
    errors: ['invalidRequest', 'invalidConfig'],
    deadlineMs: requestDeadlineMs,
  },
  chooseAgent: {
    method: 'POST',
    path: '/v1/workspaces/agent',
    auth: true,
    isForPage: true,
    summary: 'Sets the agent of a workspace, as `oratorio up --agent <name>` does. Starts nothing.',
    request: 'AgentInput',
    response: { kind: 'json', schema: 'AgentChosen' },
    errors: ['invalidRequest', 'workspaceNotFound', 'invalidConfig', 'trustRefused'],
    deadlineMs: requestDeadlineMs,
  },
  listProviders: {
    method: 'GET',
    path: '/v1/model/providers',
    auth: true,
    isForPage: true,
    summary: 'The model providers that `oratorio login` knows by name.',
    response: { kind: 'json', schema: 'ModelProvider', array: true },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  logIn: {
    method: 'POST',
    path: '/v1/model/login',
    auth: true,
    isForPage: true,
    summary:
      "Tests a model provider with one request and connects it in the user's settings, as `oratorio login` does.",
    request: 'ModelLoginInput',
    response: { kind: 'json', schema: 'ModelLogin' },
    errors: ['invalidRequest', 'invalidConfig'],
    deadlineMs: defaults.cli.liveTestMs + requestDeadlineMs,
  },
  testModel: {
    method: 'POST',
    path: '/v1/model/test',
    auth: true,
    isForPage: true,
    summary: 'Sends one small request to the model of a workspace, as `oratorio model test` does.',
    request: 'ModelTestInput',
    response: { kind: 'json', schema: 'ModelTest' },
    errors: ['invalidRequest', 'workspaceNotFound', 'invalidConfig'],
    deadlineMs: defaults.cli.liveTestMs + requestDeadlineMs,
  },
  askTrust: {
    method: 'GET',
    path: '/v1/trust',
    auth: true,
    isForPage: true,
    summary: 'Returns the trust question: the sensitive settings of a workspace, as `oratorio trust` shows them.',
    query: [path],
    response: { kind: 'json', schema: 'TrustRequest' },
    errors: ['workspaceNotFound', 'invalidConfig', 'trustRefused'],
    deadlineMs: requestDeadlineMs,
  },
  answerTrust: {
    method: 'POST',
    path: '/v1/trust',
    auth: true,
    isForPage: true,
    summary: 'Records that the user trusts exactly the settings of a question. Takes effect at the next start.',
    request: 'TrustAnswer',
    response: { kind: 'json', schema: 'TrustRequest' },
    errors: ['invalidRequest', 'workspaceNotFound', 'invalidConfig', 'trustRefused'],
    deadlineMs: requestDeadlineMs,
  },
  listExits: {
    method: 'GET',
    path: '/v1/appservers/exits',
    auth: true,
    isForPage: true,
    summary: 'Returns the last ends of the agent servers of a workspace, oldest first. They outlive the Hub.',
    query: [path],
    response: { kind: 'json', schema: 'ServerExit', array: true },
    errors: ['workspaceNotFound'],
    deadlineMs: requestDeadlineMs,
  },
  readLogs: {
    method: 'GET',
    path: '/v1/appservers/logs',
    auth: true,
    isForPage: true,
    summary: 'The last output of an agent server or its sidecar, tokens removed.',
    query: [
      path,
      {
        name: 'process',
        required: false,
        description: 'Whose output; that of the agent server when absent.',
        values: ['server', 'sidecar'],
      },
      {
        name: 'stream',
        required: false,
        description: 'Which output; standard error when absent.',
        values: ['stderr', 'stdout'],
      },
      { name: 'bytes', required: false, description: 'How much at most, 1 to 1048576; 65536 when absent.' },
    ],
    response: {
      kind: 'text',
      contentType: 'text/plain; charset=utf-8',
      description: 'The tail of the log; empty when nothing was written.',
    },
    errors: ['invalidRequest', 'workspaceNotFound'],
    deadlineMs: requestDeadlineMs,
  },
  getDashboardLink: {
    method: 'GET',
    path: '/v1/appservers/dashboard',
    auth: true,
    isForPage: true,
    summary: 'The address that opens the dashboard of a workspace in a browser. It holds a token: keep it to yourself.',
    query: [path],
    response: { kind: 'json', schema: 'DashboardLink' },
    errors: ['workspaceNotFound', 'notFound'],
    deadlineMs: requestDeadlineMs,
  },
  readWorkspacePage: {
    method: 'GET',
    path: '/w/{workspaceId}/dashboard/{path}',
    auth: true,
    isForPage: true,
    summary:
      'The Dashboard API of a workspace, passed on to its agent server. Other methods and its WebSockets pass as well; the page is at `/w/{workspaceId}/`.',
    params: [
      workspaceId,
      { name: 'path', required: true, description: 'The rest of a path of the Dashboard; may hold slashes.' },
    ],
    headers: [lastEventIdHeader],
    response: { kind: 'document', description: 'The answer of the Dashboard, or its event stream.' },
    errors: ['notFound', 'workspaceUnavailable', 'badGateway', 'originNotAllowed'],
    deadlineMs: longRequestDeadlineMs,
  },
  listInbox: {
    method: 'GET',
    path: '/v1/inbox',
    auth: true,
    isForPage: true,
    summary: 'Approvals and questions of all workspaces that wait for a user, oldest first.',
    response: { kind: 'json', schema: 'InboxItem', array: true },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  listInboxHistory: {
    method: 'GET',
    path: '/v1/inbox/history',
    auth: true,
    isForPage: true,
    summary: 'The last decisions of the inbox, newest first, each with its user, time and place.',
    query: [{ name: 'limit', required: false, description: 'How many at most, 1 to 1000; 100 when absent.' }],
    response: { kind: 'json', schema: 'InboxHistoryEntry', array: true },
    errors: ['invalidRequest'],
    deadlineMs: requestDeadlineMs,
  },
  answerInbox: {
    method: 'POST',
    path: '/v1/inbox/{workspaceId}/{requestId}',
    auth: true,
    isForPage: true,
    summary: 'Decides one of them. The first answer counts, wherever it comes from; a later one is `alreadyDecided`.',
    params: [workspaceId, { name: 'requestId', required: true, description: 'Id of the request.' }],
    request: 'InboxAnswer',
    response: { kind: 'json', schema: 'InboxDecision' },
    errors: ['invalidRequest', 'alreadyDecided', 'notFound', 'workspaceUnavailable'],
    deadlineMs: requestDeadlineMs,
  },
  getPush: {
    method: 'GET',
    path: '/v1/push',
    auth: true,
    isForPage: true,
    summary: 'The key with which a browser subscribes to notices, and how many have.',
    response: { kind: 'json', schema: 'PushInfo' },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  subscribePush: {
    method: 'POST',
    path: '/v1/push/subscribe',
    auth: true,
    isForPage: true,
    summary: 'Sends notices of the inbox to a browser from now on. The same subscription again changes nothing.',
    request: 'PushSubscribeInput',
    response: { kind: 'json', schema: 'PushSubscribed' },
    errors: ['invalidRequest'],
    deadlineMs: requestDeadlineMs,
  },
  unsubscribePush: {
    method: 'POST',
    path: '/v1/push/unsubscribe',
    auth: true,
    isForPage: true,
    summary: 'Ends the notices to a browser.',
    request: 'PushUnsubscribeInput',
    response: { kind: 'json', schema: 'PushUnsubscribed' },
    errors: ['invalidRequest'],
    deadlineMs: requestDeadlineMs,
  },
  listThreads: {
    method: 'GET',
    path: '/v1/threads',
    auth: true,
    isForPage: true,
    summary:
      'Conversations of all workspaces, the most recently active first. A stopped workspace is listed like one that serves.',
    query: [
      { name: 'q', required: false, description: 'Part of a name, a first request, an id or the name of a workspace.' },
      { name: 'limit', required: false, description: 'How many at most, 1 to 200; 100 when absent.' },
      { name: 'archived', required: false, description: 'Archived ones, too.', values: ['true', 'false'] },
      {
        name: 'forks',
        required: false,
        description: 'Only forks that have files of their own.',
        values: ['true', 'false'],
      },
    ],
    response: { kind: 'json', schema: 'HubThreadList' },
    errors: ['invalidRequest'],
    deadlineMs: requestDeadlineMs,
  },
  changeThread: {
    method: 'POST',
    path: '/v1/threads/{workspaceId}/{threadId}',
    auth: true,
    isForPage: true,
    summary: 'Renames a conversation, puts it away or takes it out again. Its agent server must serve.',
    params: [workspaceId, { name: 'threadId', required: true, description: 'Id of the conversation.' }],
    request: 'ThreadChange',
    response: { kind: 'json', schema: 'ThreadChanged' },
    errors: ['invalidRequest', 'notFound', 'workspaceUnavailable'],
    deadlineMs: requestDeadlineMs,
  },
  issueToken: {
    method: 'POST',
    path: '/v1/tokens',
    auth: true,
    summary:
      'Issues a scoped token for a program that leads workspaces, such as `oratorio mcp`. It opens `POST /v1/delegated` only.',
    request: 'TokenRequest',
    response: { kind: 'json', schema: 'IssuedToken' },
    errors: ['invalidRequest'],
    deadlineMs: requestDeadlineMs,
  },
  listTokens: {
    method: 'GET',
    path: '/v1/tokens',
    auth: true,
    summary:
      'The scoped tokens that have neither expired nor been revoked, the latest first, without the tokens themselves.',
    response: { kind: 'json', schema: 'ScopedToken', array: true },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  revokeToken: {
    method: 'POST',
    path: '/v1/tokens/revoke',
    auth: true,
    summary: 'Ends a scoped token at once. Its holder gets `tokenRevoked` from then on.',
    request: 'TokenRevocation',
    response: { kind: 'json', schema: 'ScopedToken' },
    errors: ['invalidRequest', 'notFound'],
    deadlineMs: requestDeadlineMs,
  },
  delegate: {
    method: 'POST',
    path: '/v1/delegated',
    auth: true,
    summary:
      'Lists, starts, prompts, reads or approves with a scoped token, within its rights. An agent decides nothing of its own workspace.',
    request: 'DelegatedRequest',
    response: { kind: 'document', description: 'The result of the operation.' },
    errors: [
      'invalidRequest',
      'scopeMissing',
      'tokenRevoked',
      'notFound',
      'alreadyDecided',
      'workspaceUnavailable',
      'workspaceNotFound',
      'workspaceLocked',
      'appServerStartFailed',
      'appServerUnhealthy',
      'portUnavailable',
      'placeUnavailable',
      'imageMissing',
      'placeRefused',
      'invalidConfig',
    ],
    deadlineMs: longRequestDeadlineMs,
  },
  streamEvents: {
    method: 'GET',
    path: '/v1/events',
    auth: true,
    isForPage: true,
    summary: 'Lifecycle events and notifications as they happen, resumable by id.',
    query: [lastEventId],
    headers: [lastEventIdHeader],
    response: { kind: 'events', of: 'hub' },
    errors: [],
    deadlineMs: 0,
  },
  recentEvents: {
    method: 'GET',
    path: '/v1/events/recent',
    auth: true,
    isForPage: true,
    summary: 'The last events that the Hub holds, oldest first, with their ids: the beginning of a view.',
    query: [
      { ...path, required: false, description: 'Only events of this workspace.' },
      { name: 'kind', required: false, description: 'Only events of this kind.' },
    ],
    response: { kind: 'json', schema: 'RecentEvent', array: true },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  requestNotification: {
    method: 'POST',
    path: '/v1/notifications/request',
    auth: true,
    summary:
      'Asks the program that shows notifications to show one. An agent server may use its own scoped token here.',
    request: 'NotificationRequest',
    response: { kind: 'json', schema: 'NotificationResponse' },
    errors: ['invalidRequest', 'invalidNotification', 'workspaceNotFound'],
    deadlineMs: requestDeadlineMs,
  },
  getOpenApi: {
    method: 'GET',
    path: '/v1/openapi.json',
    auth: true,
    summary: 'This API as an OpenAPI 3.1 document.',
    response: { kind: 'document', description: 'An OpenAPI 3.1 document.' },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  getMetrics: {
    method: 'GET',
    path: '/v1/metrics',
    auth: true,
    summary: 'Counters and gauges for Prometheus.',
    response: {
      kind: 'text',
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      description: 'Prometheus text exposition.',
    },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  getPage: {
    method: 'GET',
    path: '/v1/page',
    auth: true,
    isForPage: true,
    summary: 'Parts of the page that this server supports.',
    response: { kind: 'json', schema: 'PageInfo' },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
  streamInspection: {
    method: 'GET',
    path: '/v1/inspect',
    auth: true,
    isForPage: true,
    summary:
      'Every actor and every transition it takes, live. Each `data` is superjson. The WebSocket `/v1/inspect/stately` sends the same to Stately’s tools.',
    query: [
      lastEventId,
      {
        name: 'format',
        required: false,
        description: '`stately`: unnamed events whose `data` is the JSON of a message of `@statelyai/inspect`.',
        values: ['stately'],
      },
    ],
    headers: [lastEventIdHeader],
    response: { kind: 'events', of: 'inspection' },
    errors: ['invalidRequest'],
    deadlineMs: 0,
  },
  listMachines: {
    method: 'GET',
    path: '/v1/machines',
    auth: true,
    isForPage: true,
    summary: 'The statecharts, drawn: states and transitions with their coordinates.',
    response: { kind: 'json', schema: 'Chart', array: true },
    errors: [],
    deadlineMs: requestDeadlineMs,
  },
} as const satisfies Record<string, HubRoute>;

export type HubOperation = keyof typeof hubRoutes;

/** Codes that need no handler: the server answers with them before or around it (design §4). */
const everywhere: readonly HubErrorCode[] = ['hostNotAllowed', 'headersTooLarge', 'hubInternalError', 'hubStopping'];
const withBody: readonly HubErrorCode[] = ['originNotAllowed', 'requestTimeout', 'payloadTooLarge'];

/** Every error code a route can answer with, its own first; none twice. */
export function errorCodesOf(route: HubRoute): HubErrorCode[] {
  const general: HubErrorCode[] = [
    ...(route.auth ? (['unauthorized'] as const) : []),
    ...(route.method === 'POST' ? withBody : []),
    ...everywhere,
    ...(route.deadlineMs > 0 ? (['deadlineExceeded'] as const) : []),
  ];
  return [...new Set([...route.errors, ...general])];
}
