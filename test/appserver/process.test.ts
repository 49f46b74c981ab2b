import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import * as v from 'valibot';
import { AppServerLock, HealthReport } from '../../src/protocol/index.ts';
import { probeLock } from '../../src/supervise/index.ts';
import { fakeHub, hubToken, sendJson } from '../client/fake-hub.ts';
import { unusedPort } from '../ports.ts';
import { answerProof } from '../prove.ts';
import {
  Client,
  deferred,
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
    await client.notification('turn/cancelled');
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

t.test('a managed server reports its agent to the Hub before it publishes its address', async (t) => {
  const { path, home } = makeWorkspace(t);
  const first = deferred<{ body: string; isPublished: boolean }>();
  const hub = await fakeHub((_, response, body) => {
    first.resolve({ body, isPublished: readLock(path) !== undefined });
    sendJson(response, 200, { accepted: true });
  });
  t.teardown(() => hub.close());
  const hubLock = { pid: process.pid, apiBaseUrl: hub.baseUrl, token: hubToken, startedAt: '2026-01-01T00:00:00.000Z' };
  writeFileSync(join(home, 'hub.lock'), JSON.stringify({ ...hubLock, version: '1' }));
  const stdin = JSON.stringify(launchDocument(path, home));
  const server = spawnServer(t, { path, home, args: ['--managed'], stdin });
  await serving(server, path);
  const { body, isPublished } = await first.promise;
  t.match(JSON.parse(body), { health: 'unknown', agent: { kind: 'oratorio', name: 'oratorio', state: 'ready' } });
  t.notOk(isPublished, 'a Hub that finds the address has the report');
});

t.test('a managed server posts the end of a turn to the present Hub, with the notification token only', async (t) => {
  const posted = deferred<{ request: IncomingMessage; body: unknown }>();
  const reported: unknown[] = [];
  const hubToken = 'hub-token-that-proves-it';
  const hub = createHttpServer(async (request, response) => {
    if (answerProof(request, response, 'hub', [hubToken])) return;
    const body = JSON.parse(await text(request));
    if (request.url === '/v1/appservers/report') reported.push(body);
    else posted.resolve({ request, body });
    response.end('{"accepted":true}');
  }).listen(0, '127.0.0.1');
  await once(hub, 'listening');
  t.teardown(() => hub.close());
  const { path, home } = makeWorkspace(t);
  const document = launchDocument(path, home);
  const server = spawnServer(t, {
    path,
    home,
    args: ['--managed'],
    stdin: JSON.stringify(document),
    env: { ORATORIO_LOG: 'debug' },
  });
  const lock = await serving(server, path);
  const client = await Client.ready(t, lock.endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', {});
  const turn = async () => {
    await client.call('turn/start', { threadId: thread.id, input: words('count to 2\nand more') });
  };
  await turn();
  await client.notification('turn/completed');
  await eventually(
    () => (server.output().includes('hub.lock is missing') ? true : undefined),
    'a missing Hub is logged',
  );
  const { port } = hub.address() as AddressInfo;
  const hubLock = {
    pid: process.pid,
    apiBaseUrl: `http://127.0.0.1:${port}`,
    token: hubToken,
    startedAt: new Date().toISOString(),
    version: '1',
  };
  writeFileSync(join(home, 'hub.lock'), JSON.stringify(hubLock));
  await turn();
  const { request, body } = await posted.promise;
  t.equal(`${request.method} ${request.url}`, 'POST /v1/notifications/request');
  t.equal(request.headers.authorization, 'Bearer notification-token-secret');
  t.same(body, {
    workspacePath: path,
    kind: 'turnCompleted',
    title: 'A turn is complete',
    body: 'count to 2',
    severity: 'success',
    source: 'appserver',
  });
  const healthy = await eventually(
    () => reported.find((each) => v.parse(HealthReport, each).health === 'healthy'),
    'the end of the turn reaches the Hub as health, too',
  );
  t.match(v.parse(HealthReport, healthy), {
    incarnation: document.incarnation,
    lastTurn: { status: 'completed', code: null },
    model: { provider: 'demo', host: null },
    agent: { kind: 'oratorio', state: 'ready', approvals: 'asks' },
    mcpServers: { total: 0, down: [], toolProblems: [] },
    failuresInARow: 0,
  });
  t.notMatch(server.output(), /notification-token-secret|hub-token/);
});

t.test('a managed server sends its notification token to loopback addresses only', async (t) => {
  const { path, home } = makeWorkspace(t);
  const server = spawnServer(t, {
    path,
    home,
    args: ['--managed'],
    stdin: JSON.stringify(launchDocument(path, home)),
    env: { ORATORIO_LOG: 'debug' },
  });
  const hubLock = {
    pid: 1,
    apiBaseUrl: 'http://192.0.2.1:80',
    token: 'x',
    startedAt: new Date().toISOString(),
    version: '1',
  };
  writeFileSync(join(home, 'hub.lock'), JSON.stringify(hubLock));
  const client = await Client.ready(t, (await serving(server, path)).endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', {});
  await client.call('turn/start', { threadId: thread.id, input: words('x') });
  await eventually(() => (server.output().includes('names no loopback address') ? true : undefined), 'it refuses');
});
