/** Servers that send messages without end. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { boundedFetch } from '../../src/mcp/bounded-fetch.ts';
import { MessagePace } from '../../src/mcp/message-pace.ts';
import { defaults } from '../../src/protocol/index.ts';
import { call, inState, reached, room, stdio } from './helpers.ts';

const { messagesAtOnce, messagesPerSecond } = defaults.mcp;

/** A server that answers, and after its tool was called sends as many messages as its pipe takes. Its tool returns their number. */
const flooding = `
  const [message, reads] = [JSON.parse(process.argv[2]), process.argv[3] === 'reads'];
  const send = (sent) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...sent }) + '\\n');
  let [sent, text] = [0, ''];
  const flood = () => {
    while (send({ ...message, ...('id' in message && { id: 'r' + sent }) })) sent += 1;
    process.stdout.once('drain', flood);
  };
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'f', version: '1' } },
    'tools/list': { tools: [{ name: 'count', inputSchema: { type: 'object' } }] },
  };
  process.stdin.on('data', (chunk) => {
    const lines = (text + chunk).split('\\n');
    text = lines.pop();
    for (const { id, method } of lines.map((line) => JSON.parse(line))) {
      if (id === undefined || method === undefined) continue;
      const own = { content: [{ type: 'text', text: String(sent) }] };
      const result = method === 'tools/call' ? own : results[method];
      send(result ? { id, result } : { id, error: { code: -32601, message: 'unknown' } });
      if (method !== 'tools/call' || sent > 0) continue;
      flood();
      if (!reads) process.stdin.pause();
    }
  });
`;

t.test('the pace lets a burst through, then holds the reader back', async (t) => {
  const pace = new MessagePace();
  t.equal(pace.spend(messagesAtOnce), 0);
  const restMs = pace.spend(messagesPerSecond);
  t.ok(restMs > 0 && restMs <= 1_000, String(restMs));
});

for (const [what, message] of [
  ['notifications', { method: 'notifications/progress', params: { progressToken: 'x', progress: 1 } }],
  ['answers that nobody waits for', { id: 'x', result: {} }],
  ['requests', { id: 'x', method: 'ping' }],
] as const) {
  t.test(`a server that sends ${what} without end is held back, and still called`, async (t) => {
    const mcp = room(t, {});
    const file = join(mcp.workspace, 'server.mjs');
    writeFileSync(file, flooding);
    const flooded = room(t, { flood: stdio([file, JSON.stringify(message), 'reads']) });
    flooded.servers.start();
    await inState(flooded, 'flood', 'ready');
    const startedAt = performance.now();
    t.match(await call(flooded, '__count', {}), { text: '0' });
    const { text } = await call(flooded, '__count', {});
    const seconds = (performance.now() - startedAt) / 1_000;
    // The client has not read the messages in the pipe.
    const inPipe = 4_000;
    const most = messagesAtOnce + messagesPerSecond * seconds + inPipe;
    t.ok(Number(text) > 0 && Number(text) <= most, `${text} of ${most}`);
  });
}

t.test('a server that reads none of the answers to its own requests is ended, with the reason', async (t) => {
  const mcp = room(t, {});
  const file = join(mcp.workspace, 'server.mjs');
  writeFileSync(file, flooding);
  const flooded = room(t, { flood: stdio([file, JSON.stringify({ id: 'x', method: 'ping' }), 'deaf']) });
  flooded.servers.start();
  await inState(flooded, 'flood', 'ready');
  t.match(await call(flooded, '__count', {}), { text: '0' });
  const status = await reached(flooded, 'flood', ({ lastError }) => lastError !== null);
  t.match(status.lastError, /has not read 1000 answers to its own requests/);
});

/** Serves one answer. */
async function serving(t: Test, type: string, body: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(200, { 'content-type': type }).end(body));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

t.test('an answer over HTTP with too many messages is refused', async (t) => {
  const batch = (size: number) => `\n ${JSON.stringify(Array.from({ length: size }, () => ({ jsonrpc: '2.0' })))}`;
  const { batchMessages, messageBytes } = defaults.mcp;
  const fetch = boundedFetch(messageBytes, new MessagePace());
  const good = await fetch(await serving(t, 'application/json', batch(batchMessages)));
  t.equal(await good.text(), batch(batchMessages), 'the control');
  await t.rejects(fetch(await serving(t, 'application/json', batch(batchMessages + 1))), {
    message: `the answer has more than ${batchMessages} messages`,
  });
});

t.test('each line of an event stream counts, also one that a carriage return ends', async (t) => {
  class Counting extends MessagePace {
    counted = 0;
    override async wait(messages: number): Promise<void> {
      this.counted += messages;
    }
  }
  const pace = new Counting();
  const response = await boundedFetch(1_000, pace)(await serving(t, 'text/event-stream', 'data:\r\n:x\rid: 1\n\n'));
  await response.text();
  t.equal(pace.counted, 5);
});
