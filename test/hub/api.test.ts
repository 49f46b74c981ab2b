/** The Hub API over real sockets, test by test named after the section of the specification it holds. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EventSource } from 'eventsource';
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { hubRoutes } from '../../src/hub/route-table.ts';
import { AnyHubEvent, AppServerRecord, HubLock, HubStatus, hubEventKinds } from '../../src/protocol/index.ts';
import {
  agentServerFixture,
  eventually,
  makeWorkspace,
  readHubLock,
  startTestHub,
  temporaryDirectory,
} from './harness.ts';

const run = promisify(execFile);
const agentServer = agentServerFixture('well-behaved.ts');
const hub = await startTestHub(t, { agentServer });
const workspace = makeWorkspace(t, { Supervision: { ProbeIntervalMs: 200 } });

t.test('specification §2.2: the lock file has every field, and its token is accepted', async (t) => {
  const lock = v.parse(v.strictObject(HubLock.entries), readHubLock(hub.home));
  t.equal(lock.pid, hub.child.pid);
  t.match(lock.apiBaseUrl, /^http:\/\/127\.0\.0\.1:\d+$/);
  t.ok(Buffer.from(lock.token, 'base64url').length >= 32);
});

t.test('specification §2.3: GET /v1/status needs no token and has every field', async (t) => {
  const { stdout } = await run('curl', ['-sS', '-i', `${hub.lock.apiBaseUrl}/v1/status`]);
  t.match(stdout, /^HTTP\/1\.1 200 OK\r\n/);
  t.match(stdout, /content-type: application\/json/i);
  const status = v.parse(v.strictObject(HubStatus.entries), JSON.parse(stdout.split('\r\n\r\n')[1] ?? ''));
  t.match(status, {
    pid: hub.child.pid,
    apiBaseUrl: hub.lock.apiBaseUrl,
    hubVersion: hub.lock.version,
    startedAt: hub.lock.startedAt,
  });
  t.same(status.capabilities, {
    appServerManagement: true,
    portManagement: true,
    events: true,
    notifications: true,
    tray: false,
  });
});

t.test('specification §2.4: the ensure record has every field of the specification', async (t) => {
  const record = await hub.ensure(workspace, { client: { name: 'test', version: '1' }, unknownField: [1, 2] });
  v.parse(v.strictObject(AppServerRecord.entries), record);
  t.match(record, {
    workspacePath: workspace,
    canonicalWorkspacePath: workspace,
    state: 'running',
    lastError: null,
    recentStderr: null,
    exitCode: null,
    startedByHub: true,
  });
  t.match(record.serviceStatus, {
    appServerWebSocket: { state: 'running', url: record.endpoints['appServerWebSocket'], reason: null },
    api: { state: 'disabled', url: null, reason: 'Api is disabled.' },
    agui: { state: 'disabled', url: null, reason: 'AgUi is disabled.' },
    apiProxy: { state: 'disabled', url: null, reason: String },
  });
});

t.test('specification §4.2 rule 2: the returned WebSocket performs the JSON-RPC handshake', async (t) => {
  const { endpoints } = await hub.ensure(workspace);
  const socket = new WebSocket(endpoints['appServerWebSocket'] ?? '');
  await once(socket, 'open');
  const clientInfo = { name: 'test', title: 'Test', version: '1' };
  const capabilities = { approvalSupport: false, streamingSupport: true };
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { clientInfo, capabilities } }));
  const [message] = await once(socket, 'message');
  t.match(JSON.parse(message.data), { jsonrpc: '2.0', id: 0, result: { serverInfo: { version: String } } });
  socket.close();
});

t.test('specification §4.2: list, by-workspace', async (t) => {
  const list = await hub.call('GET', '/v1/appservers');
  t.ok(Array.isArray(list.body));
  t.same(list.body[0], await hub.record(workspace));
});

t.test(
  'specification §5: every route except status requires the token before its body is read, except unknown routes',
  async (t) => {
    const body = { error: { code: 'unauthorized', message: 'Missing or invalid Hub token.', details: null } };
    for (const { method, path, auth } of Object.values(hubRoutes)) {
      if (!auth) continue;
      for (const authorization of [
        '',
        'Bearer',
        'Bearer wrong',
        `Basic ${hub.lock.token}`,
        `Bearer ${hub.lock.token}x`,
      ]) {
        const answer = await hub.call(method, path, method === 'POST' ? '{ not json' : undefined, { authorization });
        t.match(answer, { status: 401, body }, `${method} ${path} with "${authorization.slice(0, 12)}"`);
      }
    }
    t.equal(
      (await hub.call('GET', '/v1/appservers', undefined, { authorization: `bearer ${hub.lock.token}` })).status,
      200,
    );
  },
);

t.test(
  'specification §7.1: workspaceNotFound is 400 for an invalid path and 404 for a missing workspace',
  async (t) => {
    for (const workspacePath of [
      undefined,
      null,
      '',
      '  ',
      'relative/path',
      7,
      {},
      ['/tmp'],
      '/tmp/\0x',
      `/${'x'.repeat(5000)}`,
    ]) {
      const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath });
      t.match(
        answer,
        { status: 400, body: { error: { code: 'workspaceNotFound' } } },
        JSON.stringify(workspacePath)?.slice(0, 20),
      );
    }
    const file = join(temporaryDirectory(t), 'file');
    writeFileSync(file, '');
    for (const workspacePath of ['/nonexistent/workspace', temporaryDirectory(t), file, `${file}/below`]) {
      const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath });
      t.match(answer, { status: 404, body: { error: { code: 'workspaceNotFound', details: { workspacePath } } } });
    }
    for (const [method, path, body] of [
      ['POST', '/v1/appservers/stop', {}],
      ['POST', '/v1/appservers/restart', {}],
      ['GET', '/v1/appservers/by-workspace', undefined],
    ] as const) {
      t.match(await hub.call(method, path, body), { status: 400, body: { error: { code: 'workspaceNotFound' } } });
    }
  },
);

t.test('specification §7.1: a lock owner that is alive but does not answer is workspaceLocked', async (t) => {
  const locked = makeWorkspace(t);
  const { acquireLock, ownIdentity, writeFileAtomic } = await import('../../src/supervise/index.ts');
  const lock = acquireLock(join(locked, '.oratorio', 'appserver.mutex'));
  t.teardown(() => lock !== 'held' && lock.release());
  writeFileAtomic(
    join(locked, '.oratorio', 'appserver.lock'),
    JSON.stringify({
      version: 1,
      pid: process.pid,
      identity: ownIdentity(),
      workspacePath: locked,
      managedByHub: false,
      incarnation: null,
      adoptionProof: null,
      startedAt: new Date().toISOString(),
      serverVersion: '9',
      endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=s3cret' },
    }),
  );
  const answer = await hub.call('POST', '/v1/appservers/ensure', { workspacePath: locked });
  const details = { workspacePath: locked, pid: process.pid, lockPath: join(locked, '.oratorio', 'appserver.lock') };
  t.match(answer, { status: 409, body: { error: { code: 'workspaceLocked', details } } });
  t.notMatch(JSON.stringify(answer.body), 's3cret');
});

t.test(
  'specification §7.1: each wrong sidecar field is invalidProxySidecar, also for a running server, without a change',
  async (t) => {
    const directory = temporaryDirectory(t);
    const binaryPath = join(directory, 'proxy');
    const configPath = join(directory, 'config.yaml');
    writeFileSync(binaryPath, '#!/bin/sh\n');
    writeFileSync(configPath, '');
    chmodSync(binaryPath, 0o755);
    const right = { enabled: true, binaryPath, configPath, endpoint: 'http://127.0.0.1:9', apiKey: 'k3y-secret' };
    const before = await hub.record(workspace);
    const wrong = [
      { binaryPath: 'relative' },
      { binaryPath: '/nonexistent' },
      { binaryPath: configPath },
      { binaryPath: directory },
      { binaryPath: 5 },
      { configPath: '' },
      { configPath: '/nonexistent' },
      { endpoint: 'http://example.com' },
      { endpoint: 'https://127.0.0.1' },
      { endpoint: 'nonsense' },
      { endpoint: 'http://user:pw@127.0.0.1' },
      { apiKey: '' },
      { apiKey: undefined },
    ];
    for (const field of wrong) {
      const answer = await hub.call('POST', '/v1/appservers/ensure', {
        workspacePath: workspace,
        apiProxy: { ...right, ...field },
      });
      t.match(answer, { status: 400, body: { error: { code: 'invalidProxySidecar' } } }, JSON.stringify(field));
      t.notMatch(JSON.stringify(answer.body), 'k3y-secret');
    }
    t.match(await hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace, apiProxy: 'x' }), {
      status: 400,
    });
    t.same(await hub.record(workspace), before);
    const different = await hub.ensure(workspace, { apiProxy: right });
    t.match(different, { pid: before.pid, serviceStatus: { apiProxy: { state: 'restartRequired' } } });
    t.match(
      (await hub.ensure(workspace)).serviceStatus,
      { apiProxy: { state: 'restartRequired' } },
      'no opinion changes nothing',
    );
    t.match((await hub.ensure(workspace, { apiProxy: { enabled: false } })).serviceStatus, {
      apiProxy: { state: 'disabled' },
    });
  },
);

t.test(
  'specification §2.5 and §7.1: notifications are normalised, published, and refused with invalidNotification',
  async (t) => {
    const events = await hub.events();
    const request = {
      workspacePath: workspace,
      kind: 'turnCompleted',
      title: 'Done',
      body: 'All is well',
      severity: 'SUCCESS',
      source: 'appserver',
      actionUrl: `oratorio://open?path=${workspace}`,
    };
    t.same((await hub.call('POST', '/v1/notifications/request', request)).body, { accepted: true });
    t.same((await events.wait('notification.requested')).data, { ...request, severity: 'success' });
    t.same((await hub.call('POST', '/v1/notifications/request', { title: 'x', severity: 'dreadful' })).body, {
      accepted: true,
    });
    t.match((await events.wait('notification.requested', ({ data }) => data['title'] === 'x')).data, {
      severity: 'info',
      kind: 'notification',
    });
    for (const wrong of [{}, { title: ' ' }, { title: 5 }, { title: 'x', body: {} }, [], 'text', null]) {
      t.match(await hub.call('POST', '/v1/notifications/request', JSON.stringify(wrong)), {
        status: 400,
        body: { error: { code: 'invalidNotification' } },
      });
    }
    events.close();
  },
);

t.test(
  'specification §6.1: records: event name equals kind, four keys, and Last-Event-ID resumes (npm eventsource)',
  async (t) => {
    const open = (headers: Record<string, string> = {}) =>
      new EventSource(`${hub.lock.apiBaseUrl}/v1/events`, {
        fetch: (url, init) =>
          fetch(url, { ...init, headers: { ...init?.headers, authorization: `Bearer ${hub.lock.token}`, ...headers } }),
      });
    const first = open();
    await once(first, 'open');
    const heard = once(first, 'notification.requested');
    await hub.call('POST', '/v1/notifications/request', { title: 'one' });
    const [event] = await heard;
    const record = v.parse(v.strictObject(AnyHubEvent.entries), JSON.parse(event.data));
    t.equal(record.kind, event.type);
    t.match(event.lastEventId, /^[A-Za-z0-9]+-\d+$/);
    first.close();

    await hub.call('POST', '/v1/notifications/request', { title: 'two' });
    const second = open({ 'last-event-id': event.lastEventId });
    const [missed] = await once(second, 'notification.requested');
    t.match(JSON.parse(missed.data).data, { title: 'two' }, 'what was missed comes first, once');
    second.close();

    const unrelated = open({ 'last-event-id': 'otherEpoch-7' });
    const [gap] = await once(unrelated, 'hub.gap');
    t.match(JSON.parse(gap.data).data, { lastEventId: 'otherEpoch-7', reason: 'otherEpoch' });
    unrelated.close();
  },
);

t.test('specification §4.2: restart starts a new process, and stop ends it', async (t) => {
  const { pid } = await hub.ensure(workspace);
  const restarted = await hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace });
  t.match(restarted, { status: 200, body: { state: 'running' } });
  t.not(restarted.body.pid, pid);
  t.match(await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace }), {
    status: 200,
    body: { state: 'stopped' },
  });
  t.match(
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace }),
    { status: 200, body: { state: 'stopped' } },
    'twice is no error',
  );
});

t.test(
  'design §4: wrong methods, unknown routes, bad bodies, foreign hosts and origins get the error object',
  async (t) => {
    const error = (code: string) => ({ body: { error: { code, message: String } } });
    t.match(await hub.call('GET', '/v1/nothing'), { status: 404, ...error('notFound') });
    const wrongMethod = await hub.call('DELETE', '/v1/status');
    t.match(wrongMethod, { status: 405, ...error('methodNotAllowed') });
    t.match(wrongMethod.headers.get('allow'), /GET/);
    for (const body of ['{', '[]', '"text"', 'null', '{"client": 5}', '{"startIfMissing": "yes"}']) {
      t.match(await hub.call('POST', '/v1/appservers/ensure', body), { status: 400 }, body);
    }
    t.match(await hub.call('POST', '/v1/appservers/ensure', `"${'x'.repeat(1_100_000)}"`), {
      status: 413,
      ...error('payloadTooLarge'),
    });
    t.match(await hub.call('POST', '/v1/shutdown', undefined, { origin: 'http://evil.example' }), {
      status: 403,
      ...error('originNotAllowed'),
    });
    const { hostname, port } = new URL(hub.lock.apiBaseUrl);
    const socket = connect(Number(port), hostname);
    socket.end('GET /v1/status HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n\r\n');
    const [first] = await once(socket, 'data');
    t.match(String(first), /^HTTP\/1\.1 403 [\s\S]*hostNotAllowed/);
    socket.destroy();
  },
);

t.test('any JSON body gets an answer of the contract, and the Hub stays up', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('ensure', 'stop', 'restart'),
      fc.oneof(
        fc.json(),
        fc
          .record({ workspacePath: fc.anything(), apiProxy: fc.anything(), client: fc.anything() })
          .map((value) => JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? String(inner) : inner))),
      ),
      async (route, body) => {
        const answer = await hub.call('POST', `/v1/appservers/${route}`, body);
        return answer.status >= 400 && answer.status < 500 && typeof answer.body.error.code === 'string';
      },
    ),
    { numRuns: 200 },
  );
  t.equal((await hub.call('GET', '/v1/status')).status, 200);
});

t.test('design §5: openapi.json lists every route; metrics count; machines are drawn', async (t) => {
  const { body } = await hub.call('GET', '/v1/openapi.json');
  for (const { method, path } of Object.values(hubRoutes))
    t.ok(body.paths[path]?.[method.toLowerCase()], `${method} ${path}`);
  const metrics = await hub.call('GET', '/v1/metrics');
  t.match(metrics.headers.get('content-type'), 'text/plain');
  t.match(metrics.body, /oratorio_hub_workspaces\{state="stopped"\} \d/);
  t.match(metrics.body, /oratorio_hub_events_total\{kind="appserver\.running"\} \d/);
});

t.test('specification §6.1: every event of a Hub has a known kind with the data of the table', async (t) => {
  const log = await fetch(`${hub.lock.apiBaseUrl}/v1/events?lastEventId=x-0`, {
    headers: { authorization: `Bearer ${hub.lock.token}` },
  });
  const reader = log.body?.getReader();
  let text = '';
  await eventually(async () => {
    text += new TextDecoder().decode((await reader?.read())?.value);
    return /"title":"two".*\n/.test(text) || undefined;
  }, 'everything held is replayed');
  await reader?.cancel();
  // The text may end within a line.
  const records = [...text.matchAll(/^data: (.*)\n/gm)].map(([, data]) => v.parse(AnyHubEvent, JSON.parse(data ?? '')));
  t.ok(records.length > 5);
  for (const { kind, data } of records) {
    const known = hubEventKinds[kind as keyof typeof hubEventKinds];
    t.ok(
      known && v.safeParse(v.strictObject(known.data.entries), data).success,
      `${kind} ${JSON.stringify(data).slice(0, 80)}`,
    );
  }
});
