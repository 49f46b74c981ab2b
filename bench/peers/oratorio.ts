/**
 * The product's own event path: EventLog → createServer, with the Hub's limits and its bearer check.
 * `oratorio.ts uws|node [plain|switch|xstate]`
 */
import { EventLog } from '../../src/events/index.ts';
import { bearer, createServer, loopbackHosts, sse } from '../../src/http/index.ts';
import { defaults } from '../../src/protocol/index.ts';
import type { BenchEvent } from './events.ts';
import { announce, serveTicks } from './peer.ts';
import { createSource, type SourceName } from './sources.ts';

const adapter = process.argv[2] === 'node' ? 'node' : 'uws';
const log = new EventLog<BenchEvent>({
  maxEvents: defaults.sse.ringEvents,
  maxBytes: defaults.sse.ringBytes,
  gap: () => {
    throw new Error('no reader resumes here');
  },
});
const server = await createServer(
  {
    routes: [
      {
        method: 'GET',
        path: '/v1/events',
        auth: bearer('bench'),
        deadlineMs: 0,
        handler: (context) => sse(log, context.header('last-event-id')),
      },
    ],
    hostAllowed: loopbackHosts(),
    errorBody: (error) => ({ error }),
    onBug: (error) => console.error(error),
    limits: {
      bodyBytes: defaults.http.hubBodyBytes,
      deadlineMs: defaults.http.requestDeadlineMs,
      sseBufferBytes: defaults.sse.bufferBytes,
      sseHeartbeatMs: defaults.sse.heartbeatMs,
      sseRetryMs: defaults.sse.retryMs,
    },
  },
  adapter,
);
const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
const next = createSource((process.argv[3] ?? 'plain') as SourceName, (event) => log.append(event));
const control = await serveTicks((events) => {
  for (let index = 0; index < events; index += 1) next();
});
announce({ port, control });
