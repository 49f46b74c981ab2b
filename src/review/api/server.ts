import { type AnyRoute, createServer, type HttpServer, knownHosts, securityHeaders } from '../../http/index.ts';
import { isLoopback } from '../../lib/index.ts';
import { defaults } from '../../protocol/index.ts';
import { errorBody } from './errors.ts';
import { limits } from './limits.ts';
import { apiRoutes, healthRoutes } from './routes.ts';
import type { ReviewApiOptions } from './service.ts';
import { EventFeed } from './stream.ts';

export interface ReviewServerOptions extends ReviewApiOptions {
  /** Further routes: webhook, page, observation. */
  readonly more: readonly AnyRoute[];
  /** Serves only the health route of the API, for a process with the role `worker`. */
  readonly isHealthOnly?: boolean;
}

/** Server of a backend, not listening yet. */
export interface ReviewServer {
  readonly http: HttpServer;
  /** Accepts no further connection, announces the end on the streams, ends them, and answers requests in flight. */
  close(announceEnd?: () => Promise<void>): Promise<void>;
}

const apiHeaders = [...securityHeaders, ['cache-control', 'no-store'] as const];
const isApi = (path: string | undefined): boolean =>
  path === undefined || path === '/health' || path.startsWith('/health/') || path.startsWith('/api/');

/** Creates the HTTP server of the review backend. */
export async function createReviewServer(options: ReviewServerOptions): Promise<ReviewServer> {
  const { store, settings, logger, more, isHealthOnly = false } = options;
  const { Host, AllowedHosts } = settings.current.Server;
  const feed = await EventFeed.open(store, logger);
  const http = await createServer(
    {
      routes: [...(isHealthOnly ? healthRoutes(options) : apiRoutes(options, feed)), ...more],
      hostAllowed: knownHosts({ isPublic: !isLoopback(Host), names: [Host, ...AllowedHosts] }),
      headers: (path) => (isApi(path) ? apiHeaders : securityHeaders),
      errorBody,
      onBug: (error, errorId) => logger.error('a request failed because of a bug', { errorId, error }),
      limits: {
        bodyBytes: limits.bodyBytes,
        deadlineMs: limits.deadlineMs,
        sseBufferBytes: defaults.sse.bufferBytes,
        sseHeartbeatMs: defaults.sse.heartbeatMs,
        sseRetryMs: defaults.sse.retryMs,
      },
    },
    // Not uWebSockets.js: proxies in front of a backend may speak HTTP/1.0 upstream, which that refuses in its parser.
    'node',
  );
  return {
    http,
    async close(announceEnd = async () => {}) {
      const closed = http.close(defaults.http.closeGraceMs);
      await announceEnd();
      await Promise.all([closed, feed.close()]);
    },
  };
}
