/** Fastify as its documentation streams: a readable handed to `reply.send`. `fastify-sse.mjs [plain|xstate]` */
import { PassThrough } from 'node:stream';
import Fastify from 'fastify';
import { makeFrames } from './events.ts';
import { announce, serveTicks } from './peer.ts';
import { createSource } from './sources.ts';

const readers = new Set();
const app = Fastify({ keepAliveTimeout: 10_000 });
app.get('/v1/events', (request, reply) => {
  const stream = new PassThrough();
  reply.header('content-type', 'text/event-stream').header('cache-control', 'no-store').send(stream);
  stream.write(': connected\n\nretry: 2000\n\n');
  readers.add(stream);
  request.raw.once('close', () => {
    readers.delete(stream);
    stream.destroy();
  });
});

let sequence = 0;
let gathered = '';
const next = createSource(process.argv[2] ?? 'plain', (event) => {
  sequence += 1;
  gathered += `event: ${event.kind}\nid: bench-${sequence}\ndata: ${JSON.stringify(event)}\n\n`;
});

function tick(events) {
  if (process.argv[2] === 'xstate') {
    for (let index = 0; index < events; index += 1) next();
  } else gathered = makeFrames(events);
  const frame = Buffer.from(gathered);
  gathered = '';
  for (const stream of readers) stream.write(frame);
}

await app.listen({ host: '127.0.0.1', port: 0 });
announce({ port: app.server.address().port, control: await serveTicks(tick) });
