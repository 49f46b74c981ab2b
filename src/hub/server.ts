import type { Fleet } from '../hosts/index.ts';
import { type Authenticate, bearer, createServer, type HttpServer, knownHosts, sameSecret } from '../http/index.ts';
import { loadCharts, pageRoutes } from '../inspect/index.ts';
import { httpBase } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type HubStatus } from '../protocol/index.ts';
import { dashboardToken, watchedPageToken } from '../supervise/index.ts';
import type { HubTelemetry } from '../telemetry/index.ts';
import { hostAuthOf, hubAuth, hubProver, notifierAuth } from './auth.ts';
import type { Credentials } from './credentials.ts';
import { hubErrorBody } from './errors.ts';
import type { HubEvents } from './events.ts';
import type { DecisionLog, Inbox } from './inbox/index.ts';
import type { Inspection } from './inspection.ts';
import type { Moves } from './moves/index.ts';
import type { WebPush } from './notices/index.ts';
import { normaliseNotification } from './notifications.ts';
import { createTargets, hostTarget, Readers, workspacePages } from './pages/index.ts';
import { listenAtStablePort } from './port.ts';
import type { Registry } from './registry.ts';
import { bindRoutes } from './routes/index.ts';
import type { ScopedTokens } from './scoped-tokens.ts';
import { ThreadLists } from './threads.ts';

export interface ServerOptions {
  /** The user's home of Oratorio. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly host: string;
  /** 0: the port of the last start, or the next free one. */
  readonly port: number;
  /** Host names, without a port, by which the Hub is reached besides those of this machine. */
  readonly allowedHosts: readonly string[];
  readonly token: string;
  readonly credentials: Credentials;
  readonly tokens: ScopedTokens;
  readonly registry: Registry;
  readonly events: HubEvents;
  readonly inbox: Inbox;
  readonly fleet: Fleet;
  readonly moves: Moves;
  readonly decisions: DecisionLog;
  readonly push: WebPush;
  readonly inspection: Inspection;
  readonly telemetry: HubTelemetry;
  readonly status: () => HubStatus;
  readonly isStopping: () => boolean;
  readonly shutdown: (mode: 'stop' | 'detach') => void;
  readonly logger: Logger;
  readonly onListening: (apiBaseUrl: string) => void;
}

/** Makes and binds the Hub's HTTP server. */
export async function openServer(options: ServerOptions): Promise<HttpServer> {
  const { logger, registry, events, inspection, telemetry, fleet } = options;
  const pageToken = watchedPageToken(options.home);
  const ownerAuth = bearer(options.token);
  const auth = hubAuth(options.token, pageToken);
  const hostAuth = hostAuthOf(auth, options.tokens);
  const readers = new Readers({ home: options.home, environment: options.environment, logger });
  const targetOf = createTargets({ home: options.home, registry, readers });
  const pages = workspacePages({
    auth: hostAuth,
    isToken: (token, host) => sameSecret(token, pageToken()) || (host === null && options.tokens.isHost(token)),
    onRevoked: (token, end) => options.tokens.onRevoked(token, end),
    // A page has no data, and its address must not show which hosts exist.
    isKnown: ({ host, id }) => host !== null || registry.byId(id) !== undefined,
    targetOf: (asked, signal) =>
      asked.host === null ? targetOf(asked.id, signal) : hostTarget(fleet, asked.host, asked.id),
  });
  const routes = bindRoutes({
    registry,
    home: options.home,
    environment: options.environment,
    inbox: options.inbox,
    tokens: options.tokens,
    decisions: options.decisions,
    push: options.push,
    threadLists: new ThreadLists({ home: options.home, registry, logger }),
    logger,
    status: options.status,
    events: events.source,
    recentEvents: events.recent,
    inspection: inspection.source,
    stately: inspection.stately,
    dashboardToken: (path) => dashboardToken(options.home, path),
    auth,
    hostAuth,
    fleet,
    moves: options.moves,
    notifierAuth: notifierAuth(ownerAuth, options.credentials),
    prove: hubProver(options.token, pageToken, options.tokens, {
      bound: () => server.bound,
      names: options.allowedHosts,
    }),
    isStopping: options.isStopping,
    notify(request, workspacePath) {
      const notification = normaliseNotification(request, workspacePath);
      events.publish('notification.requested', notification.workspacePath, notification);
    },
    shutdown: options.shutdown,
    openApi: async () => {
      const { hubOpenApi } = await import('./openapi.ts');
      const { hubVersion, apiBaseUrl } = options.status();
      return hubOpenApi(hubVersion, apiBaseUrl);
    },
    charts: loadCharts,
    metrics: async () => {
      const { renderMetrics } = await import('./metrics.ts');
      return renderMetrics({ registry, events, inspection, server, telemetry, status: options.status() });
    },
  });
  const server: HttpServer = await createServer(
    {
      routes: [
        ...routes,
        ...pages.routes,
        ...pageRoutes((directory) =>
          logger.warn('the inspector page has not been built; run: npm run build', { directory }),
        ),
      ],
      webSockets: [inspection.statelySocket('/v1/inspect/stately', byAddress(auth)), ...pages.webSockets],
      hostAllowed: knownHosts({ isPublic: false, names: options.allowedHosts }),
      guard(request) {
        pages.guard(request);
      },
      headers: pages.headers,
      errorBody: hubErrorBody,
      onBug: (error, errorId) => logger.error('a request failed because of a bug', { errorId, error }),
      limits: {
        bodyBytes: defaults.http.hubBodyBytes,
        deadlineMs: defaults.http.requestDeadlineMs,
        sseBufferBytes: defaults.sse.bufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    },
    'auto',
    (reason) => logger.warn('uWebSockets.js does not load here; serving on node:http instead', { reason }),
  );
  const { statePath } = options.status();
  const bound = await listenAtStablePort(server, { host: options.host, port: options.port, statePath, logger });
  options.onListening(httpBase(bound));
  return {
    adapter: server.adapter,
    library: server.library,
    bound,
    listen: (address) => server.listen(address),
    pause: () => server.pause(),
    stats: () => server.stats(),
    async close(graceMs) {
      await server.close(graceMs);
      pages.close();
      await readers.close();
    },
  };
}

/** The token in the address as well: clients of a WebSocket in a browser cannot send a header. */
function byAddress(auth: Authenticate<unknown>): Authenticate<unknown> {
  return (request) => {
    const { query, path, method } = request;
    const token = query.get('token');
    const header = (name: string) =>
      token !== null && name === 'authorization' ? `Bearer ${token}` : request.header(name);
    return auth({ header, query, path, method });
  };
}
