import * as v from 'valibot';
import { StorageError } from '../agent/index.ts';
import {
  type AnyRoute,
  type AnyWebSocketRoute,
  bytes,
  createProver,
  empty,
  type Handler,
  HttpError,
  json,
  type Method,
  type Reply,
  type RequestContext,
  sse,
} from '../http/index.ts';
import { loadCharts } from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';
import {
  type AuthMethods,
  dashboardPaths,
  defaults,
  ExchangeInput,
  type ExchangeResult,
  exchangePath,
  LoginInput,
  type PageInfo,
  pageSubprotocol,
  proofPaths,
  version,
} from '../protocol/index.ts';
import { automationRoutes } from './automations.ts';
import { eventPage, recentEvents, singleEvent } from './events.ts';
import { dashboardGuard } from './guard.ts';
import type { Automations, DashboardOptions } from './options.ts';
import { pageAndAssets } from './page.ts';
import { parseQuery, wholeNumber } from './query.ts';
import { sessionDeletion, sessionList, textSearch } from './sessions.ts';
import { configSchema, settings } from './settings.ts';
import { EventStream } from './stream.ts';
import { summary } from './summary.ts';

/** A route with a handler for any principal: all routes share one `auth`. */
type ApiRoute = Omit<AnyRoute, 'auth'>;

const logQuery = {
  after: v.optional(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
  limit: v.optional(wholeNumber(1, defaults.dashboard.logLines), String(defaults.dashboard.logLines)),
};

const lastEventIdOf = (context: Pick<RequestContext, 'header' | 'query'>) =>
  context.header('last-event-id') ?? context.query.get('lastEventId') ?? undefined;

/** The routes of one dashboard, and the streams to close with its server. */
export interface Dashboard {
  readonly routes: readonly AnyRoute[];
  readonly webSockets: readonly AnyWebSocketRoute[];
  /** Ends the streams. */
  close(): void;
}

/**
 * Every route of specification §4.3 and of `dashboardPaths`. Paths that begin with `/dashboard/` match in any case; the three
 * paths that the specification lists without it are there with it too. Everything but the page, `auth` and `login` asks who it is.
 *
 * @param ownsListener nothing else is served at this address
 */
export function createDashboard(options: DashboardOptions, ownsListener: boolean): Dashboard {
  const { access, automations } = options;
  const stream = new EventStream(options);
  const subscriptions = [
    automations && followAutomations(automations, stream, options.logger),
    options.onDeleted?.((sessionKey) => stream.deleted(sessionKey)),
  ];
  const guarded = apiRoutes(options, stream).flatMap(spelled);
  return {
    routes: [
      ...pageAndAssets(ownsListener),
      ...openRoutes(options).flatMap(spelled),
      ...guarded.map((route) => ({ ...route, handler: explained(route.handler), auth: access.authenticate })),
    ],
    webSockets: conversationSocket(options),
    close() {
      for (const unsubscribe of subscriptions) unsubscribe?.();
      stream.close();
    },
  };
}

/** The WebSocket of conversations, guarded as the other routes are: a server's guard does not judge upgrades. */
function conversationSocket({ access, conversations }: DashboardOptions): AnyWebSocketRoute[] {
  if (conversations === undefined) return [];
  const { isReady, ...handlers } = conversations;
  return [
    {
      path: dashboardPaths.socket,
      subprotocol: pageSubprotocol,
      auth(request) {
        dashboardGuard(request);
        const caller = access.authenticateSocket(request);
        if (!isReady()) throw new HttpError(503, 'stopping', 'The agent server is not ready or shutting down.', null);
        return caller;
      },
      maxPayloadBytes: defaults.jsonRpc.frameBytes,
      maxBufferedBytes: defaults.jsonRpc.bufferedBytes,
      ...handlers,
    },
  ];
}

/** Errors of a full disk or an unreadable database, which are not bugs and name the problem. */
function explained(handler: Handler): Handler {
  const explain = (error: unknown): never => {
    if (error instanceof StorageError) throw new HttpError(503, 'storageFailed', error.message, { code: error.code });
    throw error;
  };
  return (context) => {
    try {
      const reply = handler(context);
      return reply instanceof Promise ? reply.catch(explain) : reply;
    } catch (error) {
      return explain(error);
    }
  };
}

/** Changes come in bursts, and computing the newest revision reads everything. */
const announceMs = 250;

/** Notifies the readers of the stream that automations have changed. Returns a function that ends that. */
function followAutomations(automations: Automations, stream: EventStream, logger: Logger): () => void {
  let timer: NodeJS.Timeout | undefined;
  const announce = () => {
    timer = undefined;
    automations.state().then(
      ({ revision }) => stream.automationsChanged(revision),
      (error: unknown) => logger.warn('automations cannot be read', { error }),
    );
  };
  const unsubscribe = automations.subscribe(() => {
    // A reader that is away gets a request to read everything when it comes back.
    if (!stream.isRead) stream.automationsChanged(0);
    else timer ??= setTimeout(announce, announceMs).unref();
  });
  return () => {
    unsubscribe();
    clearTimeout(timer);
  };
}

/** A path without the prefix exists with it as well, except for Prometheus'. */
function spelled(route: ApiRoute): ApiRoute[] {
  if (/^\/dashboard\//i.test(route.path)) return [{ ...route, ignoreCase: true }];
  if (!route.path.startsWith('/api/')) return [route];
  return [route, { ...route, path: `/dashboard${route.path}`, ignoreCase: true }];
}

/** Routes that need no token: they prove the server, or lead to a token. */
function openRoutes({ access, isOwn }: DashboardOptions): ApiRoute[] {
  const prover = createProver({ role: 'dashboard', find: access.find, isOwn });
  return [
    { method: 'GET', path: proofPaths.dashboard, handler: prover.handler },
    {
      method: 'POST',
      path: exchangePath,
      bodyLimit: 4_096,
      handler: async (context: RequestContext) => {
        prover.requireExchange(await context.json(ExchangeInput), context.header('host'));
        return json(200, { token: access.token } satisfies ExchangeResult);
      },
    },
    {
      method: 'GET',
      path: dashboardPaths.auth,
      handler: () => json(200, { methods: access.methods } satisfies AuthMethods),
    },
    {
      method: 'POST',
      path: dashboardPaths.login,
      bodyLimit: 4_096,
      handler: async (context: RequestContext) => json(200, access.login(await context.json(LoginInput))),
    },
  ];
}

function apiRoutes(options: DashboardOptions, stream: EventStream): ApiRoute[] {
  const { access } = options;
  const deletion = sessionDeletion(options, stream);
  const config = settings(options);
  const get = (path: string, handler: ApiRoute['handler']): ApiRoute => on('GET', path, handler);
  return [
    get(dashboardPaths.pageInfo, () => json(200, pageInfo(options))),
    on('POST', dashboardPaths.logout, (context) => {
      access.logout(context.header('authorization'));
      return empty(204);
    }),
    get(dashboardPaths.summary, summary(options)),
    get(dashboardPaths.sessions, sessionList(options)),
    get(dashboardPaths.texts, textSearch(options)),
    get(dashboardPaths.sessionEvents, eventPage(options)),
    get(dashboardPaths.sessionEvent, singleEvent(options)),
    get(dashboardPaths.events, recentEvents(options)),
    ...automationRoutes(options),
    get(dashboardPaths.configSchema, configSchema),
    get(dashboardPaths.config, config.show),
    { ...on('PUT', dashboardPaths.config, config.change), bodyLimit: defaults.dashboard.configBytes },
    on('POST', dashboardPaths.mcpLogin, config.startLogin),
    get(dashboardPaths.machines, machines),
    on('DELETE', dashboardPaths.deleteSession, deletion.one),
    on('DELETE', dashboardPaths.deleteSessions, deletion.all),
    { ...get(dashboardPaths.eventStream, (context) => sse(stream, lastEventIdOf(context))), deadlineMs: 0 },
    ...optionalRoutes(options),
  ];
}

/** The charts of all machines; a checkout that has not been built has none. */
async function machines(): Promise<Reply> {
  const charts = await loadCharts().catch((error: Error) => {
    throw new HttpError(503, 'notBuilt', error.message, null);
  });
  return json(200, charts);
}

/** Services of a server that runs the agent. */
function optionalRoutes({ recentLog, inspection, metrics }: DashboardOptions): ApiRoute[] {
  const routes: ApiRoute[] = [];
  if (recentLog) {
    routes.push(
      on('GET', dashboardPaths.logs, ({ query }) => {
        const { after, limit } = parseQuery(query, logQuery);
        return json(200, recentLog.after(after, limit));
      }),
    );
  }
  if (inspection) {
    const handler: ApiRoute['handler'] = async (context) => {
      const actor = context.query.get('actor');
      const source = await inspection();
      return sse(actor === null ? source : source.ofActor(actor), lastEventIdOf(context));
    };
    routes.push({ ...on('GET', dashboardPaths.inspect, handler), deadlineMs: 0 });
  }
  if (metrics) {
    routes.push(
      on('GET', dashboardPaths.metrics, async () =>
        bytes(200, 'text/plain; version=0.0.4; charset=utf-8', await metrics()),
      ),
    );
  }
  return routes;
}

function on(method: Method, path: string, handler: ApiRoute['handler']): ApiRoute {
  return { method, path, handler };
}

function pageInfo({ workspacePath, readOnly, views }: DashboardOptions): PageInfo {
  return {
    kind: 'workspace',
    version,
    workspacePath,
    ...(readOnly !== undefined && { readOnly }),
    views: [...views],
  };
}
