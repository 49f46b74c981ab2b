import { dirname } from 'node:path';
import { type Authenticate, bearer, createServer, type HttpServer, loopbackHosts } from '../http/index.ts';
import { loadCharts, pageRoutes } from '../inspect/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type HubStatus } from '../protocol/index.ts';
import { dashboardToken } from '../supervise/index.ts';
import type { HubTelemetry } from '../telemetry/index.ts';
import { hubProver, notifierAuth } from './auth.ts';
import type { Credentials } from './credentials.ts';
import { hubErrorBody } from './errors.ts';
import type { HubEvents } from './events.ts';
import type { Inspection } from './inspection.ts';
import { normaliseNotification } from './notifications.ts';
import type { Registry } from './registry.ts';
import { bindRoutes } from './routes/index.ts';

export interface ServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  readonly credentials: Credentials;
  readonly registry: Registry;
  readonly events: HubEvents;
  readonly inspection: Inspection;
  readonly telemetry: HubTelemetry;
  readonly status: () => HubStatus;
  readonly isStopping: () => boolean;
  readonly shutdown: (mode: 'stop' | 'detach') => void;
  /** Resolves when everything known now is on disk. */
  readonly save: () => Promise<void>;
  readonly logger: Logger;
  readonly onListening: (apiBaseUrl: string) => void;
}

/** Makes and binds the Hub's HTTP server. */
export async function openServer(options: ServerOptions): Promise<HttpServer> {
  const { logger, registry, events, inspection, telemetry } = options;
  const auth = bearer(options.token);
  const routes = bindRoutes({
    registry,
    status: options.status,
    events: events.source,
    recentEvents: events.recent,
    inspection: inspection.source,
    stately: inspection.stately,
    // The Hub's state directory lies in the home of its user.
    dashboardToken: (path) => dashboardToken(dirname(options.status().statePath), path),
    auth,
    notifierAuth: notifierAuth(auth, options.credentials),
    save: options.save,
    logger,
    prove: hubProver(options.token, () => server.bound),
    isStopping: options.isStopping,
    notify(request, scope) {
      const notification = normaliseNotification(request, scope);
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
        ...pageRoutes((directory) =>
          logger.warn('the inspector page has not been built; run: npm run build', { directory }),
        ),
      ],
      webSockets: [inspection.statelySocket('/v1/inspect/stately', byAddress(auth))],
      hostAllowed: loopbackHosts(),
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
  const bound = await server.listen({ host: options.host, port: options.port });
  options.onListening(`http://${bound.host}:${bound.port}`);
  return server;
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
