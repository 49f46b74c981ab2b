/** Names that the page in the browser needs as values: no schema, so that no validator is shipped to it. */
export * from './agent-words.ts';
export * from './answers.ts';
export * from './checkpoint-words.ts';
export * from './cut-text.ts';
export * from './diff-names.ts';
export * from './incident-words.ts';
export * from './mcp-words.ts';
export * from './places.ts';
export * from './proof.ts';
export * from './question-fields.ts';
export * from './remedies.ts';
export * from './thread-markdown.ts';
export * from './thread-name.ts';
export * from './workspace-state.ts';

/** Views of the page. Each server names those that it has. */
export const pageViews = [
  'now',
  'overview',
  'chat',
  'sessions',
  'actors',
  'automations',
  'settings',
  'events',
  'logs',
  'inbox',
  'threads',
] as const;
export type PageView = (typeof pageViews)[number];

/** Path of the page of a workspace on the Hub; its Dashboard API is below it. */
export const workspacePagePath = (workspaceId: string): string => `/w/${workspaceId}/`;
/** Path prefix of a page of another machine; `/w/<id>/` follows. */
export const hostPageShape = /^\/h\/([a-z][a-z0-9-]{0,31})(?=\/w\/)/;
export const hostPagePath = (host: string, path: string): string => `/h/${host}${path}`;
/** Name or path of a workspace with its machine first: `build:site`; without a host, unchanged. */
export const hostedName = (host: string | null | undefined, name: string): string =>
  host === null || host === undefined ? name : `${host}:${name}`;
/** Host of a page address; null for a page of this machine. */
export const hostOfPage = (address: string): string | null => hostPageShape.exec(address)?.[1] ?? null;
export const workspacePageShape = /^\/w\/([a-z2-7]{16})(?=\/|$)/;

/** Subprotocol of the WebSockets of a page: `new WebSocket(url, [pageSubprotocol, token])`. The server echoes the first only. */
export const pageSubprotocol = 'oratorio';

/** Path of the service worker that shows notices; the only script that the page registers. */
export const pushWorkerPath = '/sw.js';

/** The event stream: `event:` is the trace type, `data:` an EventSummary. Others are prefixed with a dot's owner. */
export const streamEvents = {
  /** First of every connection: `{bootId, newest}`. */
  hello: 'stream.hello',
  /** Events are missing here: fetch the shown state again. `{}` */
  gap: 'stream.gap',
  /** A session was deleted: `{sessionKey}`; all: `{sessionKey: null}`. */
  deleted: 'session.deleted',
  /** Automations have changed: `{revision}`. */
  automations: 'automations.changed',
} as const;

/** Route patterns. The first spelling is the specification's; `/dashboard/…` is matched in any case. */
export const dashboardPaths = {
  page: '/DashBoard',
  pageInfo: '/dashboard/api/page',
  auth: '/dashboard/api/auth',
  login: '/dashboard/api/login',
  logout: '/dashboard/api/logout',
  summary: '/DashBoard/api/summary',
  sessions: '/DashBoard/api/sessions',
  sessionEvents: '/DashBoard/api/sessions/:sessionKey/events',
  sessionEvent: '/DashBoard/api/sessions/:sessionKey/events/:id',
  texts: '/dashboard/api/texts',
  /** Events of all sessions, newest first. */
  events: '/dashboard/api/events',
  automationsState: '/dashboard/api/orchestrators/automations/state',
  automationsRefresh: '/dashboard/api/orchestrators/automations/refresh',
  /** Addresses of ours for the buttons of the page. Bodies and answers as the JSON-RPC method of the same name. */
  automations: '/dashboard/api/automations',
  automation: '/dashboard/api/automations/:id',
  automationRuns: '/dashboard/api/automations/:id/runs',
  automationRun: '/dashboard/api/automations/:id/run',
  automationEnable: '/dashboard/api/automations/:id/enable',
  /** `POST /dashboard/api/mcp/login`: body and answer are those of the JSON-RPC method `mcp/login`. */
  mcpLogin: '/dashboard/api/mcp/login',
  configSchema: '/dashboard/api/config/schema',
  config: '/dashboard/api/config',
  logs: '/dashboard/api/logs',
  machines: '/dashboard/api/machines',
  inspect: '/dashboard/api/inspect',
  /** Also without the prefix, as the specification lists them. */
  deleteSession: '/api/sessions/:sessionKey',
  deleteSessions: '/api/sessions',
  eventStream: '/api/events/stream',
  metrics: '/metrics',
  /** JSON-RPC of the agent server over a WebSocket, restricted to `pageMethods`. */
  socket: '/dashboard/ws',
} as const;

/** Name of the `BroadcastChannel` between a program in a browser and the page of its inspector. */
export const inspectorChannel = (id: string): string => `oratorio.inspector.${id}`;

/** Timeouts and limits of the page's conversations. */
export const conversationDefaults = {
  openDeadlineMs: 15_000,
  /** The server's own pings of a WebSocket, every 30 s, are not shown to a page. */
  silenceMs: 60_000,
  probeDeadlineMs: 10_000,
  interruptDeadlineMs: 5_000,
  approvalGuardMs: 500,
  backoffBaseMs: 300,
  backoffCapMs: 5_000,
  /** Turns of the first reading of a thread, and of each further page of older ones. */
  pageTurns: 50,
} as const;
