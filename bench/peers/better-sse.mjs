/** better-sse: one channel, as its documentation shows; a batched tick is one event buffer for all sessions. */
import { createServer } from 'node:http';
import { createChannel, createEventBuffer, createSession } from 'better-sse';
import { makeEvent } from './events.ts';
import { announce, serveTicks } from './peer.ts';

const channel = createChannel();
const server = createServer({ keepAliveTimeout: 10_000 }, async (request, response) => {
  channel.register(await createSession(request, response, { keepAlive: 15_000 }));
});
let sequence = 0;

function tick(events) {
  if (events === 1) {
    const event = makeEvent();
    sequence += 1;
    channel.broadcast(event, event.kind, { eventId: `bench-${sequence}` });
    return;
  }
  const buffer = createEventBuffer();
  for (let index = 0; index < events; index += 1) {
    const event = makeEvent();
    sequence += 1;
    buffer.push(event, event.kind, `bench-${sequence}`);
  }
  for (const session of channel.activeSessions) session.batch(buffer);
}

await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
announce({ port: server.address().port, control: await serveTicks(tick) });
