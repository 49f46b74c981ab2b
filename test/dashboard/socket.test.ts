/** The WebSocket of the page: admitted pages, permitted requests, and the end of a page that does not read. */
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import { dashboardPaths, rpcErrors } from '../../src/protocol/index.ts';
import { always, say } from '../agent/scripted-provider.ts';
import { type Message, words } from '../appserver/harness.ts';
import { type Scene, scene } from './harness.ts';

interface Dialing {
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** Status of a refused upgrade, or the open socket. */
async function dial(t: Test, { port, token }: Scene, { protocols = ['oratorio', token], headers = {} }: Dialing = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${dashboardPaths.socket}`, [...protocols], { headers });
  t.teardown(() => socket.terminate());
  const refused = once(socket, 'unexpected-response').then(([, response]) => Number(response.statusCode));
  socket.on('error', () => {});
  return Promise.race([refused, once(socket, 'open').then(() => socket)]);
}

/** A page that is introduced. */
async function page(t: Test, scene: Scene, dialing?: Dialing) {
  const socket = await dial(t, scene, dialing);
  if (typeof socket === 'number') throw new Error(`the upgrade was refused with ${socket}`);
  const heard: Message[] = [];
  const checks = new Set<() => void>();
  socket.on('message', (data) => {
    heard.push(JSON.parse(String(data)));
    for (const check of checks) check();
  });
  const until = (fits: (message: Message) => boolean) =>
    new Promise<Message>((resolve) => {
      const check = () => {
        const found = heard.find(fits);
        if (found === undefined) return;
        checks.delete(check);
        resolve(found);
      };
      checks.add(check);
      check();
    });
  let count = 0;
  const ask = (method: string, params: unknown = {}) => {
    count += 1;
    const id = count;
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return until((message) => message.id === id && message.method === undefined);
  };
  await ask('initialize', { clientInfo: { name: 'page', version: '1' } });
  socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'initialized', params: {} }));
  return { socket, ask, until };
}

t.test('a page with the dashboard token holds a conversation, and only the subprotocol is echoed', async (t) => {
  const served = await scene(t, {}, always(say('Good day.')));
  const { socket, ask, until } = await page(t, served);
  t.equal(socket.protocol, 'oratorio');
  const { result } = await ask('thread/start');
  await ask('turn/enqueue', { threadId: result.thread.id, input: words('hello') });
  const { params } = await until(({ method }) => method === 'turn/completed');
  t.match(params.turn.items.at(-1), { type: 'agentMessage', text: 'Good day.' });
  t.notMatch(served.log.join(''), served.token);
});

t.test('a method that the page does not need is refused by name, and the connection stays', async (t) => {
  const { ask } = await page(t, await scene(t));
  for (const method of [
    'mcp/upsert',
    'mcp/list',
    'cron/add',
    'automation/state',
    'command/expand',
    'skills/read',
    'thread/resume',
  ]) {
    const { error } = await ask(method);
    t.match(error, { code: rpcErrors.methodNotAllowed.code, data: { method } }, method);
  }
  t.match(await ask('thread/list'), { result: { data: [] } });
});

for (const adapter of ['uws', 'node']) {
  t.test(`an upgrade without the token, or of another origin, is refused (${adapter})`, async (t) => {
    process.env['ORATORIO_HTTP_ADAPTER'] = adapter;
    t.teardown(() => delete process.env['ORATORIO_HTTP_ADAPTER']);
    const served = await scene(t);
    const { port, token } = served;
    const authorization = `Bearer ${token}`;
    t.equal(await dial(t, served, { protocols: ['oratorio'] }), 401, 'no token');
    t.equal(await dial(t, served, { protocols: ['oratorio', 'x'.repeat(43)] }), 401, 'a wrong token');
    t.equal(await dial(t, served, { protocols: [token] }), 400, 'the token alone');
    t.equal(await dial(t, served, { protocols: [], headers: { authorization } }), 400, 'no subprotocol');
    const foreign: readonly Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: `http://localhost:${port}` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
      { host: 'evil.example' },
    ];
    for (const headers of foreign) t.equal(await dial(t, served, { headers }), 403, JSON.stringify(headers));
    const own = { origin: `http://127.0.0.1:${port}` };
    t.equal((await page(t, served, { headers: own })).socket.protocol, 'oratorio');
    const backwards = await page(t, served, { protocols: [token, 'oratorio'] });
    t.equal(backwards.socket.protocol, 'oratorio', 'the token is not echoed, wherever it stands');
    t.ok(await page(t, served, { protocols: ['oratorio'], headers: { authorization } }), 'a client that sends headers');
  });
}

t.test('without authentication the page shows no chat, and a conversation still needs the token', async (t) => {
  const served = await scene(t, { DashBoard: { Auth: 'none' } });
  t.notOk((await served.ask('/dashboard/api/page', { token: null })).body.views.includes('chat'));
  t.equal(await dial(t, served, { protocols: ['oratorio'] }), 401);
  t.ok(await page(t, served));
});

t.test('a page that does not read is closed with 1013, and the others are served', async (t) => {
  const served = await scene(t, {}, always(say('x'.repeat(2_000_000))));
  const other = await page(t, served);
  const { result } = await other.ask('thread/start');
  const { id: threadId } = result.thread;
  await other.ask('turn/enqueue', { threadId, input: words('much') });
  await other.until(({ method }) => method === 'turn/completed');
  const { socket } = await page(t, served);
  const closed = once(socket, 'close');
  socket.pause();
  for (let id = 100; id < 125; id += 1) {
    const params = { threadId, includeTurns: true };
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'thread/read', params }));
    // The server reads the request: one that it has not read when it closes would make the system drop the reason.
    t.match(await other.ask('thread/list'), { result: { data: [{ id: threadId }] } });
  }
  socket.resume();
  t.equal((await closed)[0], 1013);
});
