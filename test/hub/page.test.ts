/** Routes of the browser page of a Hub, over real sockets: page information, actors, addresses of dashboards. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect';
import { EventSource } from 'eventsource';
import superjson from 'superjson';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { WebSocket } from 'ws';
import { InspectionRecord, PageInfo } from '../../src/protocol/index.ts';
import { dashboardTokenFile, pageToken } from '../../src/supervise/index.ts';
import { agentServerFixture, eventually, makeWorkspace, request, startTestHub } from './harness.ts';

const hub = await startTestHub(t, { agentServer: agentServerFixture('serves-dashboard.ts') });
const get = (path: string) => request(hub.lock, 'GET', path);
const pathOf = (workspace: string) => `/v1/appservers/dashboard?path=${encodeURIComponent(workspace)}`;

t.test('GET /v1/page returns the kind hub and its views', async (t) => {
  const { status, body } = await get('/v1/page');
  t.equal(status, 200);
  t.strictSame(v.parse(v.strictObject(PageInfo.entries), body), {
    kind: 'hub',
    version: hub.lock.version,
    views: ['now', 'overview', 'threads', 'inbox', 'actors', 'events', 'logs'],
  });
});

t.test('a page subscribes its browser to notices of a public push service, and ends that', async (t) => {
  const page = { ...hub.lock, token: pageToken(hub.home) };
  const post = (path: string, body: unknown, headers = {}) => request(page, 'POST', `/v1/push/${path}`, body, headers);
  const { body: info, headers } = await request(page, 'GET', '/v1/push');
  t.match(info, { publicKey: /^B[\w-]{86}$/, subscriptions: 0 });
  t.equal(headers.get('cache-control'), 'no-store');
  const keys = { p256dh: info.publicKey, auth: 'A'.repeat(22) };
  const endpoint = 'https://8.8.8.8/send/1';
  t.match(await post('subscribe', { endpoint, keys }), { status: 200, body: { id: /^[\w-]{12}$/ } });
  t.match((await request(page, 'GET', '/v1/push')).body, { publicKey: info.publicKey, subscriptions: 1 });
  t.equal(statSync(join(hub.home, 'hub', 'push.json')).mode & 0o777, 0o600);
  for (const body of [
    { endpoint: 'https://169.254.169.254/latest', keys },
    { endpoint: 'http://push.example.com/', keys },
    { endpoint: `https://8.8.8.8/${'x'.repeat(2_000)}`, keys },
    { endpoint, keys: { ...keys, auth: '' } },
    { endpoint },
    'no JSON',
  ])
    t.match(await post('subscribe', body), { status: 400, body: { error: { code: 'invalidRequest' } } });
  t.equal((await post('subscribe', { endpoint, keys }, { origin: 'http://evil.example' })).status, 403);
  t.equal((await request({ ...page, token: 'none' }, 'GET', '/v1/push')).status, 401);
  t.match((await post('unsubscribe', { endpoint })).body, { removed: true });
  t.match((await post('unsubscribe', { endpoint })).body, { removed: false });
  t.notMatch(hub.output(), /send\/1/, 'the log does not name the address');
});

t.test('the address of a dashboard has its token in the fragment', async (t) => {
  const workspace = makeWorkspace(t, { DashBoard: { Enabled: true } });
  const record = await hub.ensure(workspace);
  const { status, body, headers } = await get(pathOf(workspace));
  t.equal(status, 200);
  t.equal(headers.get('cache-control'), 'no-store');
  const url = new URL(body.url);
  t.equal(url.origin, new URL(record.endpoints['dashboard'] ?? '').origin);
  t.equal(url.pathname, '/DashBoard');
  const file = dashboardTokenFile(hub.home, record.canonicalWorkspacePath);
  t.equal(url.hash, `#token=${readFileSync(file, 'utf8').trim()}`);
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.notMatch(JSON.stringify((await get('/v1/appservers')).body), url.hash.slice(7), 'no other route has the token');
});

t.test('a missing dashboard is an error with the reason', async (t) => {
  const disabled = makeWorkspace(t, { DashBoard: { Enabled: false } });
  await hub.ensure(disabled);
  const off = await get(pathOf(disabled));
  t.match(off, {
    status: 404,
    body: { error: { code: 'notFound', message: /disabled/, details: { state: 'running' } } },
  });

  const stopped = makeWorkspace(t, { DashBoard: { Enabled: true } });
  await hub.ensure(stopped);
  await request(hub.lock, 'POST', '/v1/appservers/stop', { workspacePath: stopped });
  t.match(await get(pathOf(stopped)), {
    status: 404,
    body: { error: { code: 'notFound', details: { state: 'stopped' } } },
  });

  t.match(await get('/v1/appservers/dashboard'), { status: 400, body: { error: { code: 'workspaceNotFound' } } });
  t.match(await get(pathOf('/nowhere/at/all')), { status: 404, body: { error: { code: 'workspaceNotFound' } } });
  t.match(await request({ ...hub.lock, token: 'wrong' }, 'GET', pathOf(disabled)), { status: 401 });
});

/** An event source that sends the token. */
function open(t: Test, path: string): EventSource {
  const source = new EventSource(`${hub.lock.apiBaseUrl}${path}`, {
    fetch: (url, init) =>
      fetch(url, { ...init, headers: { ...init?.headers, authorization: `Bearer ${hub.lock.token}` } }),
  });
  t.teardown(() => source.close());
  return source;
}

t.test('GET /v1/inspect includes records from before its viewer connected', async (t) => {
  const workspace = makeWorkspace(t, {});
  await hub.ensure(workspace);
  await request(hub.lock, 'POST', '/v1/appservers/restart', { workspacePath: workspace });
  const records: InspectionRecord[] = [];
  const source = open(t, '/v1/inspect');
  for (const type of ['actor', 'transition', 'deadLetter', 'gone', 'dropped']) {
    source.addEventListener(type, ({ data }) => records.push(v.parse(InspectionRecord, superjson.parse(data))));
  }
  const actor = await eventually(
    () => records.find((record) => record.type === 'actor' && record.id === workspace),
    'the workspace is in the stream',
  );
  if (actor.type !== 'actor') throw new Error('no actor');
  t.match(actor, {
    machine: 'agent-server',
    parent: 'hub',
    statistics: { running: { visits: 2 }, starting: { visits: 2 } },
  });
  await eventually(
    () =>
      records.some((record) => record.type === 'transition' && record.id === workspace && record.step === actor.steps),
    'its history',
  );
  const story = records.filter((record) => record.type === 'transition' && record.id === workspace);
  t.match(story[0], { step: 1, event: 'ENSURE', from: ['stopped'], edges: [String] });
  t.ok(story.every((record) => record.type === 'transition' && record.edges.length > 0));
});

t.test('?format=stately and its WebSocket send the same records in the format of Stately', async (t) => {
  const workspace = makeWorkspace(t, {});
  await hub.ensure(workspace);
  const streamed: StatelyInspectionEvent[] = [];
  const source = open(t, '/v1/inspect?format=stately');
  source.onmessage = ({ data }) => streamed.push(JSON.parse(data));

  const received: StatelyInspectionEvent[] = [];
  const address = `${hub.lock.apiBaseUrl.replace('http', 'ws')}/v1/inspect/stately`;
  createWebSocketReceiver({ server: `${address}?token=${hub.lock.token}` }).subscribe((event) => received.push(event));

  for (const events of [streamed, received]) {
    const found = await eventually(
      () => events.find((event) => event.type === '@xstate.actor' && event.sessionId === workspace),
      'the workspace',
    );
    t.match(found, { rootId: 'hub', parentId: 'hub', name: workspace, definition: /"id":"agent-server"/ });
  }
  await request(hub.lock, 'POST', '/v1/appservers/stop', { workspacePath: workspace });
  for (const events of [streamed, received]) {
    await eventually(
      () =>
        events.some(
          (event) =>
            event.type === '@xstate.snapshot' &&
            event.sessionId === workspace &&
            (event.snapshot as unknown as { readonly value: unknown }).value === 'stopped',
        ),
      'it has stopped',
    );
    t.notMatch(JSON.stringify(events), hub.lock.token);
  }
});

t.test('the WebSocket requires the token, and an unknown format is refused', async (t) => {
  const address = `${hub.lock.apiBaseUrl.replace('http', 'ws')}/v1/inspect/stately`;
  for (const query of ['', '?token=wrong', `?token=${hub.lock.token}x`]) {
    const socket = new WebSocket(`${address}${query}`);
    const message = await new Promise((resolve) => socket.once('error', (error) => resolve(error.message)));
    t.match(message, '401', query);
  }
  t.match(await get('/v1/inspect?format=other'), { status: 400, body: { error: { code: 'invalidRequest' } } });
});
