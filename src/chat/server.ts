import { createServer, type HttpServer, loopbackHosts } from '../http/index.ts';
import { defaults } from '../protocol/index.ts';
import { chatErrorBody } from './errors.ts';
import { chatGuard } from './guard.ts';
import type { ChatOptions } from './options.ts';
import { chatRoutes } from './routes.ts';

/** A server that serves the chat API and nothing else. It does not listen yet. */
export async function openChatServer(options: ChatOptions): Promise<HttpServer> {
  const { isPublic, api, logger } = options;
  if (isPublic && api.ApiKey.trim() === '') {
    logger.warn('the chat API is open to the network without a key: everybody there can run commands here', {
      host: api.Host,
    });
  }
  return createServer(
    {
      routes: chatRoutes(options),
      guard: chatGuard(options),
      hostAllowed: isPublic ? () => true : loopbackHosts(),
      errorBody: chatErrorBody,
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
}
