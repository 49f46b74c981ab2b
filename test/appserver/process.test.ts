import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { type FeedEvent, readInbox } from '../../src/hub/inbox/agent-server.ts';
import { AppServerLock } from '../../src/protocol/index.ts';
import { probeLock } from '../../src/supervise/index.ts';
import { unusedPort } from '../ports.ts';
import {
  Client,
  eventually,
  launchDocument,
  lockFile,
  makeWorkspace,
  readLock,
  serving,
  spawnServer,
  stateOf,
  words,
} from './harness.ts';

const baseUrl = (lock: AppServerLock): string => `http://${new URL(lock.endpoints.appServerWebSocket).host}`;
const mutex = (path: string): string => join(path, '.oratorio', 'appserver.mutex');

t.test('the server publishes its address to its owner only, and leaves nothing after SIGTERM and SIGINT', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { path, home } = makeWorkspace(t);
    const server = spawnServer(t, { path, home });
    const lock = await serving(server, path);
    v.assert(AppServerLock, lock);
    t.match(lock, {
      pid: server.child.pid,
      workspacePath: path,
      managedByHub: false,
      incarnation: /^[0-9a-f-]{36}$/,
      adoptionProof: null,
    });
    t.same(Object.keys(lock.endpoints), ['appServerWebSocket', 'dashboard'], 'no service is named that is not served');
    if (process.platform !== 'win32') t.equal(statSync(lockFile(path)).mode & 0o777, 0o600);
    t.equal(probeLock(mutex(path)), 'held');
    const client = await Client.ready(t, lock.endpoints.appServerWebSocket);
    const { thread } = await client.call('thread/start', {});
    await client.call('turn/start', { threadId: thread.id, input: words('count to 1000') });
    await client.notification('item/agentMessage/delta');
    server.child.kill(signal);
    t.match(await client.notification('system/event'), { params: { kind: 'turnSuspended', reason: 'stop' } });
    t.equal((await client.closed).code, 1001);
    t.equal(await server.ended, 0, signal);
    t.same(readdirSync(join(path, '.oratorio')).sort(), ['appserver.mutex', 'config.json']);
    t.ok(readdirSync(stateOf(path)).includes('state.db'), 'what decides rights is in the home');
    t.equal(probeLock(mutex(path)), 'free');
    t.notMatch(
      server.output(),
      new URL(lock.endpoints.appServerWebSocket).searchParams.get('token') ?? 'no token',
      'no token in the log',
    );
    await t.rejects(fetch(`${baseUrl(lock)}/healthz`));
  }
});

t.test('healthz and readyz report the state of the server', async (t) => {
  const { path, home } = makeWorkspace(t);
  const server = spawnServer(t, { path, home });
  const lock = await serving(server, path);
  const health = async () => (await fetch(`${baseUrl(lock)}/healthz`)).json();
  t.match(await health(), {
    status: 'ok',
    incarnation: lock.incarnation,
    uptimeMs: Number,
    idleMs: Number,
    connections: 0,
    activeTurns: 0,
    eventLoopLagMs: Number,
  });
  t.same(await (await fetch(`${baseUrl(lock)}/readyz`)).json(), { status: 'ok' });
  const before = await health();
  const later = await eventually(async () => {
    const now = await health();
    return now.idleMs >= before.idleMs + 200 ? now : undefined;
  }, 'probes are no use of the server');
  t.ok(later.idleMs <= later.uptimeMs);
  const client = await Client.ready(t, lock.endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('count to 1000') });
  t.match(await health(), { connections: 1, activeTurns: 1, idleMs: 0 });
  t.equal((await fetch(`${baseUrl(lock)}/nope`)).status, 404);
  t.equal((await fetch(`${baseUrl(lock)}/healthz`, { method: 'POST' })).status, 405);
  rmSync(mutex(path));
  const lost = await fetch(`${baseUrl(lock)}/healthz`);
  t.same(
    [lost.status, (await lost.json()).status],
    [503, 'lockLost'],
    'a second server could start: this one is not well',
  );
});

t.test('the token', async (t) => {
  const { path, home } = makeWorkspace(t);
  const lock = await serving(spawnServer(t, { path, home }), path);
  const url = new URL(lock.endpoints.appServerWebSocket);
  t.match(url.searchParams.get('token'), /^[\w-]{43}$/, '32 bytes');
  for (const query of ['', '?token=', '?token=wrong', `?token=${'x'.repeat(43)}`]) {
    await t.rejects(Client.open(t, `ws://${url.host}/ws${query}`), query);
    const answer = await fetch(`http://${url.host}/ws${query}`, {
      headers: { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' },
    });
    t.ok(answer.status === 401 || answer.status === 426, `${query} ${answer.status}`);
  }
  await Client.ready(t, url.href);
});

t.test('kill -9 releases the lock, and the next server serves', async (t) => {
  const { path, home } = makeWorkspace(t);
  const first = spawnServer(t, { path, home });
  const old = await serving(first, path);
  first.child.kill('SIGKILL');
  t.equal(await first.ended, 'SIGKILL');
  t.equal(readLock(path)?.pid, old.pid, 'its address is still there');
  t.equal(probeLock(mutex(path)), 'free');
  const second = spawnServer(t, { path, home });
  const lock = await serving(second, path);
  await Client.ready(t, lock.endpoints.appServerWebSocket);
});

t.test('a taken port is replaced, and the published address has the new one', async (t) => {
  const { path, home } = makeWorkspace(t);
  const squatter = createServer().listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  t.teardown(() => squatter.close());
  const { port } = squatter.address() as AddressInfo;
  const server = spawnServer(t, { path, home, args: ['--listen', `ws://127.0.0.1:${port}`] });
  const lock = await serving(server, path);
  t.not(new URL(lock.endpoints.appServerWebSocket).port, String(port));
  // Two ways lead here, the file and the pipe: the one can be faster than the other.
  await eventually(
    () => (/"level":"warn".*the port cannot be had/.test(server.output()) ? true : undefined),
    'the log reports it',
  );
  await Client.ready(t, lock.endpoints.appServerWebSocket);
});

t.test('the server listens at the requested address with the configured token', async (t) => {
  const { path, home } = makeWorkspace(t, { appserver: { websocket: { token: 'configured + token' } } });
  const port = await unusedPort();
  const server = spawnServer(t, { path, home, args: [`--listen=ws://127.0.0.1:${port}`] });
  const lock = await serving(server, path);
  t.equal(lock.endpoints.appServerWebSocket, `ws://127.0.0.1:${port}/ws?token=configured%20%2B%20token`);
  await Client.ready(t, lock.endpoints.appServerWebSocket);
});

t.test('a managed server uses ports, token and incarnation of its launch document', async (t) => {
  const { path, home } = makeWorkspace(t, { AppServer: { WebSocket: { Token: 'not this one' } } });
  const document = launchDocument(path);
  const server = spawnServer(t, { path, home, args: ['--managed'], stdin: `${JSON.stringify(document)}\n` });
  const lock = await serving(server, path);
  t.match(lock, { managedByHub: true, incarnation: 'incarnation-1', adoptionProof: 'proof-of-adoption' });
  t.equal(new URL(lock.endpoints.appServerWebSocket).searchParams.get('token'), 'web-socket-token-secret');
  t.match(await (await fetch(`${baseUrl(lock)}/healthz`)).json(), { incarnation: 'incarnation-1' });
  await Client.ready(t, lock.endpoints.appServerWebSocket);
});

t.test('the end of a server leaves the published address of another server unchanged', async (t) => {
  const { path, home } = makeWorkspace(t);
  const server = spawnServer(t, { path, home });
  const lock = await serving(server, path);
  const other = { ...lock, pid: 1, startedAt: new Date(0).toISOString() };
  writeFileSync(lockFile(path), JSON.stringify(other));
  server.child.kill('SIGTERM');
  t.equal(await server.ended, 0);
  t.same(JSON.parse(readFileSync(lockFile(path), 'utf8')), other);
});

t.test('a server publishes its first report with its address', async (t) => {
  const { path, home } = makeWorkspace(t);
  const stdin = JSON.stringify(launchDocument(path, home));
  const lock = await serving(spawnServer(t, { path, home, args: ['--managed'], stdin }), path);
  t.match(v.parse(AppServerLock, { ...lock, report: { health: 'splendid' } }), { pid: lock.pid, report: undefined });
  t.match(lock.report, { health: 'unknown', agent: { kind: 'oratorio', name: 'oratorio', state: 'ready' } });
});

t.test('a managed server reports the end of a turn on its feed and asks the Hub nothing', async (t) => {
  const requests: string[] = [];
  const hub = createHttpServer((request, response) => {
    requests.push(request.url ?? '');
    response.end();
  }).listen(0, '127.0.0.1');
  await once(hub, 'listening');
  t.teardown(() => hub.close());
  const { path, home } = makeWorkspace(t);
  const { port } = hub.address() as AddressInfo;
  const hubLock = { pid: process.pid, apiBaseUrl: `http://127.0.0.1:${port}`, token: 'hub-token-of-the-owner' };
  const startedAt = new Date().toISOString();
  writeFileSync(join(home, 'hub.lock'), JSON.stringify({ ...hubLock, startedAt, version: '1' }));
  const document = launchDocument(path, home);
  const stdin = JSON.stringify(document);
  const server = spawnServer(t, { path, home, args: ['--managed'], stdin, env: { ORATORIO_LOG: 'debug' } });
  const endpoint = (await serving(server, path)).endpoints.appServerWebSocket;
  const events: FeedEvent[] = [];
  const cut = new AbortController();
  t.teardown(() => cut.abort());
  void readInbox(endpoint, cut.signal, { onSign: () => {}, onEvent: (event) => events.push(event) });
  await eventually(() => events.find(({ event }) => event === 'report'), 'the feed is open');
  const client = await Client.ready(t, endpoint);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('count to 2\nand more') });
  const notified = await eventually(() => events.find(({ event }) => event === 'notification'), 'the end is notified');
  t.same(notified.data, {
    kind: 'turnCompleted',
    title: 'A turn is complete',
    body: 'count to 2',
    severity: 'success',
    source: 'appserver',
  });
  const healthy = await eventually(
    () => events.find(({ event, data }) => event === 'report' && data.health === 'healthy'),
    'the health is reported',
  );
  t.match(healthy.data, {
    incarnation: document.incarnation,
    lastTurn: { status: 'completed', code: null },
    model: { provider: 'demo', host: null },
    agent: { kind: 'oratorio', state: 'ready', approvals: 'asks' },
    mcpServers: { total: 0, down: [], toolProblems: [] },
    failuresInARow: 0,
  });
  t.same(requests, []);
  t.notMatch(server.output(), /notification-token-secret|hub-token/);
});
