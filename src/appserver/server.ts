import { createServer as createTcpServer } from 'node:net';
import {
  type AnyRoute,
  type Authenticate,
  bearerToken,
  createServer,
  HttpError,
  type HttpServer,
  json,
  loopbackHosts,
  type RequestContext,
  type Socket,
  sameSecret,
  type WebSocketRoute,
} from '../http/index.ts';
import { type ListenAddress, plainHost } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type LaunchDocument, type Sleep, SleepRequest, sleepPath } from '../protocol/index.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import type { Health } from './health.ts';

export interface ServerOptions {
  readonly token: string;
  /** Others than this machine can connect. Their names for it are their business: the token protects, not the Host header. */
  readonly isPublic: boolean;
  readonly connection: Omit<ConnectionOptions, 'wire'>;
  /** Examines this server; the answer of `GET /healthz`. */
  readonly examine: () => Promise<Health>;
  readonly inspection: (auth: Authenticate<undefined>) => readonly AnyRoute[];
  /** Decides about the sleep of this server; the answer of `POST /v1/sleep`. */
  readonly sleep: (request: SleepRequest) => Promise<Sleep>;
  readonly inbox: (auth: Authenticate<undefined>) => readonly AnyRoute[];
  readonly inspectionSocket: (auth: Authenticate<undefined>) => WebSocketRoute;
  readonly isReady: () => boolean;
  readonly logger: Logger;
}

/** Makes the agent server's HTTP server: liveness, readiness, and the WebSocket. It does not listen yet. */
export async function openServer(options: ServerOptions): Promise<HttpServer> {
  const { token, isPublic, connection, isReady, logger } = options;
  const server: HttpServer = await createServer(
    {
      routes: [
        {
          method: 'GET',
          path: '/healthz',
          async handler() {
            const health = await options.examine();
            return json(health.status === 'ok' ? 200 : 503, health);
          },
        },
        {
          method: 'GET',
          path: '/readyz',
          handler: () => (isReady() ? json(200, { status: 'ok' }) : json(503, { status: 'stopping' })),
        },
        {
          method: 'POST',
          path: sleepPath,
          auth: (request) => authenticate(request, token),
          async handler(context: RequestContext) {
            return json(200, await options.sleep(await context.json(SleepRequest)));
          },
        },
        ...options.inspection((request) => authenticate(request, token)),
        ...options.inbox((request) => authenticate(request, token)),
      ],
      webSockets: [
        webSocket(token, connection, isReady),
        options.inspectionSocket((request) => authenticate(request, token)),
      ],
      hostAllowed: isPublic ? () => true : loopbackHosts(),
      errorBody: ({ code, message, details }) => ({ error: { code, message, details } }),
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
  return server;
}

/** Checks the token in the header, or in the address: a browser cannot send a header with a WebSocket. */
function authenticate(request: Parameters<Authenticate<undefined>>[0], token: string): undefined {
  const given = request.query.get('token') ?? bearerToken(request.header('authorization'));
  if (given === null || given === undefined || !sameSecret(given, token)) {
    throw new HttpError(401, 'unauthorized', 'The token is missing or wrong.');
  }
}

function webSocket(token: string, options: Omit<ConnectionOptions, 'wire'>, isReady: () => boolean) {
  const connections = new WeakMap<Socket, Connection>();
  const route: WebSocketRoute<undefined> = {
    path: '/ws',
    auth(request) {
      authenticate(request, token);
      if (!isReady()) throw new HttpError(503, 'stopping', 'The agent server is not ready or shutting down.');
      return undefined;
    },
    maxPayloadBytes: defaults.jsonRpc.frameBytes,
    maxBufferedBytes: defaults.jsonRpc.bufferedBytes,
    open: (socket) => connections.set(socket, new Connection({ ...options, wire: socket })),
    message: (socket, text) => connections.get(socket)?.receive(text),
    close: (socket) => connections.get(socket)?.close(),
  };
  return route;
}

/**
 * Listens on `wanted`, or on any free port of its host when that one is taken. The lock file has the actual port.
 *
 * @param sharing see `LaunchDocument`
 */
export async function listen(
  server: HttpServer,
  wanted: ListenAddress,
  logger: Logger,
  sharing: LaunchDocument['sharesPorts'],
): Promise<ListenAddress> {
  try {
    // Two servers that share their ports would both listen at the same one.
    if (sharing === 'later') await bindAlone(wanted);
    return await server.listen(wanted, sharing !== undefined);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (wanted.port === 0 || (code !== 'EADDRINUSE' && code !== 'EACCES')) throw error;
    logger.warn('the port cannot be had; taking a free one', { ...wanted, code });
    // The system may give a shared port to two servers.
    return server.listen({ host: wanted.host, port: 0 });
  }
}

/** Takes a port and gives it back. @throws Error like `HttpServer.listen` for a port that is taken */
function bindAlone({ host, port }: ListenAddress): Promise<void> {
  const probe = createTcpServer();
  return new Promise((resolve, reject) => {
    probe.once('error', reject);
    probe.listen({ host: plainHost(host), port, exclusive: true }, () => probe.close(() => resolve()));
  });
}
