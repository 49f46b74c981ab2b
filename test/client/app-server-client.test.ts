/** Specification §4.2 rule 2, and the JSON-RPC of the agent server as its client sees it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { type WebSocket, WebSocketServer } from 'ws';
import { AppServerClient, startThread, startTurn, type TurnEvent } from '../../src/client/index.ts';

type Message = {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
};
type Respond = (socket: WebSocket, message: Message) => void;

const send = (socket: WebSocket, message: object) => socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));

/** An agent server that answers `initialize`; the rest is the test's. */
async function fakeServer(t: Test, respond: Respond = () => undefined) {
  const received: Message[] = [];
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    socket.on('message', (data) => {
      const message = JSON.parse(String(data)) as Message;
      received.push(message);
      if (message.method === 'initialize') {
        send(socket, { id: message.id, result: { serverInfo: { name: 'fake', version: '1' }, novelty: true } });
      } else respond(socket, message);
    });
  });
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws?token=secret-token`, received };
}

const connect = (t: Test, url: string, options: Parameters<typeof AppServerClient.connect>[1] = {}) =>
  AppServerClient.connect(url, options).then((client) => {
    t.teardown(() => client.close());
    return client;
  });

t.test('connect sends initialize with id 0, then initialized', async (t) => {
  const { url, received } = await fakeServer(t, (socket, { id }) => send(socket, { id, result: {} }));
  const client = await connect(t, url, { clientInfo: { name: 'test', title: 'Test', version: '3' } });
  await client.request('ping');
  t.match(client.server, { serverInfo: { name: 'fake' }, novelty: true });
  t.strictSame(received, [
    {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: {
        clientInfo: { name: 'test', title: 'Test', version: '3' },
        capabilities: { approvalSupport: false, streamingSupport: true },
      },
    },
    { jsonrpc: '2.0', method: 'initialized', params: {} },
    { jsonrpc: '2.0', id: 1, method: 'ping', params: {} },
  ]);
});

t.test('answers resolve their requests in any order, errors are typed, and invalid frames are ignored', async (t) => {
  const waiting: Message[] = [];
  const { url } = await fakeServer(t, (socket, message) => {
    if (message.method === 'initialized') return;
    waiting.push(message);
    if (waiting.length < 3) return;
    socket.send('nonsense');
    send(socket, { nonsense: true });
    const [one, two, three] = waiting;
    send(socket, { id: three?.id, result: 'three' });
    send(socket, { id: two?.id, error: { code: -32010, message: 'no such thread', data: { threadId: 'x' } } });
    send(socket, { id: one?.id, result: null });
  });
  const client = await connect(t, url);
  const [one, two, three] = await Promise.allSettled([client.request('1'), client.request('2'), client.request('3')]);
  t.match(one, { status: 'fulfilled', value: null });
  t.match(two, { reason: { name: 'JsonRpcError', code: -32010, message: 'no such thread', data: { threadId: 'x' } } });
  t.match(three, { value: 'three' });
});

t.test('requests of the server are answered', async (t) => {
  const { url, received } = await fakeServer(t, (socket, { method }) => {
    if (method === 'initialized')
      for (const id of ['a', 'b']) send(socket, { id, method: `ask/${id}`, params: { id } });
  });
  const answered = () =>
    received
      .filter(({ method }) => method === undefined)
      .sort((one, other) => (String(one.id) < String(other.id) ? -1 : 1));
  const client = await connect(t, url, {
    onRequest: (method) => {
      if (method === 'ask/b') throw new Error('cannot');
      return { decision: 'accept' };
    },
  });
  for await (const _ of ticks(t)) if (answered().length === 2) break;
  t.match(answered(), [
    { id: 'a', result: { decision: 'accept' } },
    { id: 'b', error: { code: -32603, message: /cannot/ } },
  ]);
  client.close();
  const silent = await connect(t, url);
  for await (const _ of ticks(t)) if (answered().length === 4) break;
  t.match(answered()[3], { error: { code: -32601 } }, 'without a handler: method not found');
  silent.close();
});

/** Turns of the event loop, for a while. */
async function* ticks(t: Test): AsyncGenerator<void> {
  const deadline = performance.now() + 180_000;
  while (performance.now() < deadline) {
    yield;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  t.fail('did not happen in 180 s');
}

t.test('time-out, abort, close and a lost connection reject open requests', async (t) => {
  const { url } = await fakeServer(t, (socket, { method }) => {
    if (method === 'die') socket.close(1013, 'overloaded');
  });
  const client = await connect(t, url);
  await t.rejects(client.request('x', {}, { timeoutMs: 20 }), {
    name: 'AppServerConnectionError',
    message: /x was not answered/,
  });
  await t.rejects(client.request('x', {}, { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
  const inFlight = client.request('x');
  const iterated = client.notifications().next();
  client.notify('die');
  await t.rejects(inFlight, { name: 'AppServerConnectionError', message: /1013 overloaded/ });
  await t.rejects(iterated, { message: /1013/ });
  t.match(await client.closed, { message: /1013/ });
  await t.rejects(client.request('late'), { name: 'AppServerConnectionError' });
  const other = await connect(t, url);
  const unanswered = other.request('x');
  other.close();
  await t.rejects(unanswered, { message: /was closed/ });
});

t.test('an unreachable, refusing or silent server is an error without the token', async (t) => {
  const http = createServer((_, response) => response.writeHead(401).end());
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}/ws?token=secret-token`;
  const refused = await AppServerClient.connect(url).catch((error: Error) => error);
  t.match(refused, { name: 'AppServerConnectionError', message: /cannot be reached/ });
  t.notMatch(String(refused), 'secret-token');
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
  await t.rejects(AppServerClient.connect(url), { name: 'AppServerConnectionError' });
  await t.rejects(AppServerClient.connect('nonsense'), { name: 'AppServerConnectionError' });
  const silent = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await new Promise((resolve) => silent.once('listening', resolve));
  t.teardown(() => {
    for (const socket of silent.clients) socket.terminate();
    silent.close();
  });
  const silentUrl = `ws://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  await t.rejects(AppServerClient.connect(silentUrl, { timeoutMs: 5_000 }), { message: /initialize was not answered/ });
});

/** Server whose turns follow their prompt. */
const agent: Respond = (socket, { id, method, params }) => {
  const about = { threadId: 't1', turnId: 'turn_001' };
  const delta = (text: string) =>
    send(socket, { method: 'item/agentMessage/delta', params: { ...about, itemId: 'i', delta: text } });
  if (method === 'thread/start') send(socket, { id, result: { thread: { id: 't1' } } });
  if (method === 'turn/interrupt') {
    send(socket, { id, result: {} });
    send(socket, {
      method: 'turn/cancelled',
      params: { threadId: 't1', turn: { id: 'turn_001', status: 'cancelled' } },
    });
  }
  if (method !== 'turn/start') return;
  const [{ text = '' } = {}] = (params?.['input'] ?? []) as { text?: string }[];
  // Notifications may overtake the answer.
  delta('Hel');
  send(socket, { id, result: { turn: { id: 'turn_001', status: 'running' } } });
  send(socket, {
    method: 'item/agentMessage/delta',
    params: { ...about, turnId: 'turn_000', delta: 'of another turn' },
  });
  send(socket, { method: 'item/agentMessage/delta', params: { ...about, threadId: 't0', delta: 'of another thread' } });
  delta('lo');
  send(socket, { method: 'item/usage/delta', params: { ...about, tokens: 2 } });
  if (text === 'fail') send(socket, { method: 'turn/failed', params: { ...about, error: { message: 'no model' } } });
  if (text === 'hello') {
    const turn = { id: 'turn_001', status: 'completed' };
    send(socket, { method: 'turn/completed', params: { threadId: 't1', turn, tokenUsage: { totalTokens: 3 } } });
  }
};

t.test('a turn yields deltas in order, then the completed turn', async (t) => {
  const { url, received } = await fakeServer(t, agent);
  const client = await connect(t, url);
  const threadId = await startThread(client, { workspacePath: '/w' });
  t.match(received.at(-1), {
    method: 'thread/start',
    params: { identity: { workspacePath: '/w', channelName: 'cli' } },
  });
  const events: TurnEvent[] = [];
  for await (const event of await startTurn(client, threadId, 'hello')) events.push(event);
  t.match(events, [
    { type: 'message', text: 'Hel' },
    { type: 'message', text: 'lo' },
    { type: 'other', method: 'item/usage/delta' },
    { type: 'completed', turn: { id: 'turn_001', status: 'completed', tokenUsage: { totalTokens: 3 } } },
  ]);
  t.equal(events.length, 4);
});

t.test('an interrupted and a failed turn end with their state', async (t) => {
  const { url } = await fakeServer(t, agent);
  const client = await connect(t, url);
  const turn = await startTurn(client, 't1', 'wait');
  let last: TurnEvent | undefined;
  for await (const event of turn) {
    if (event.type === 'other') await turn.interrupt();
    last = event;
  }
  t.match(last, { type: 'cancelled', turn: { status: 'cancelled' } });
  const failing = await startTurn(client, 't1', 'fail');
  await t.rejects(
    async () => {
      for await (const _ of failing);
    },
    { name: 'TurnFailedError', message: 'no model' },
  );
});
