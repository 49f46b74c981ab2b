import { createServer } from 'node:net';
import superjson from 'superjson';
import t from 'tap';
import { HubClient } from '../../src/client/index.ts';
import { type Answer, fakeHub, hubToken, recordOf, sendJson, statusOf } from './fake-hub.ts';

async function against(answer: Answer) {
  const hub = await fakeHub(answer);
  t.teardown(() => hub.close());
  return { hub, client: new HubClient({ apiBaseUrl: hub.baseUrl, token: hubToken }) };
}

t.test('each method is one request of specification §4.2', async (t) => {
  const record = recordOf('/w');
  const answers: Record<string, unknown> = {
    'GET /v1/appservers': [record],
    'POST /v1/shutdown': { ok: true },
    'POST /v1/shutdown?mode=detach': { ok: true },
    'POST /v1/notifications/request': { accepted: true },
    'GET /v1/machines': [],
  };
  const { hub, client } = await against((request, response) => {
    if (request.url?.startsWith('/v1/appservers/logs')) response.end('the tail');
    else if (request.url === '/v1/status') sendJson(response, 200, statusOf(hub.baseUrl));
    else sendJson(response, 200, answers[`${request.method} ${request.url}`] ?? record);
  });
  t.match(await client.status(), { hubVersion: '9.9.9' });
  t.match(await client.ensure({ workspacePath: '/w', client: { name: 'test', version: '1' } }), { state: 'running' });
  t.match(await client.list(), [{ canonicalWorkspacePath: '/w' }]);
  t.match(await client.byWorkspace('/w x&y'), { pid: 4242 });
  t.match(await client.stop('/w'), { workspacePath: '/w' });
  t.match(await client.restart({ workspacePath: '/w' }), { workspacePath: '/w' });
  t.equal(await client.requestNotification({ title: 'done' }), true);
  t.equal(await client.logs('/w', { stream: 'stdout', bytes: 10 }), 'the tail');
  t.strictSame(await client.machines(), []);
  await client.shutdown();
  await client.shutdown({ detach: true });
  t.strictSame(
    hub.requests.map(({ line }) => line),
    [
      'GET /v1/status',
      'POST /v1/appservers/ensure',
      'GET /v1/appservers',
      'GET /v1/appservers/by-workspace?path=%2Fw+x%26y',
      'POST /v1/appservers/stop',
      'POST /v1/appservers/restart',
      'POST /v1/notifications/request',
      'GET /v1/appservers/logs?path=%2Fw&stream=stdout&bytes=10',
      'GET /v1/machines',
      'POST /v1/shutdown',
      'POST /v1/shutdown?mode=detach',
    ],
  );
  t.ok(hub.requests.every(({ headers }) => headers.authorization === `Bearer ${hubToken}`));
  t.strictSame(JSON.parse(hub.requests[1]?.body ?? ''), {
    workspacePath: '/w',
    client: { name: 'test', version: '1' },
  });
});

t.test(
  'specification §9: unknown fields, services and states are tolerated, and required fields suffice',
  async (t) => {
    const strange = recordOf('/w', {
      state: 'hibernating',
      novelty: 1,
      serviceStatus: { telepathy: { state: 'dreaming', url: null, reason: null, more: true } },
      endpoints: { telepathy: 'x://y' },
    });
    const least = { workspacePath: '/a/b', canonicalWorkspacePath: '/a/b', state: 'stopped' };
    const { client } = await against((_, response) => sendJson(response, 200, [strange, least]));
    t.match(await client.list(), [
      { state: 'hibernating', novelty: 1, phase: 'hibernating', serviceStatus: { telepathy: { state: 'dreaming' } } },
      { displayName: 'b', endpoints: {}, adopted: false, lastError: null },
    ]);
  },
);

t.test('specification §7.1: a refusal becomes a typed error', async (t) => {
  const details = { workspacePath: '/w', pid: 7 };
  const error = { code: 'workspaceLocked', message: 'Another one owns it.', details };
  const { client } = await against((_, response) => sendJson(response, 409, { error }));
  await t.rejects(client.ensure({ workspacePath: '/w' }), {
    name: 'HubRequestError',
    status: 409,
    code: 'workspaceLocked',
    message: 'Another one owns it.',
    details,
  });
});

t.test('an answer of another program is an error', async (t) => {
  const bodies: [number, string, RegExp][] = [
    [200, 'nonsense', /is not JSON/],
    [200, '[{"state":"running"}]', /0\.workspacePath must be/],
    [502, '<html>', /HTTP 502 without the error object/],
  ];
  for (const [status, body, message] of bodies) {
    const { client } = await against((_, response) => response.writeHead(status).end(body));
    await t.rejects(client.list(), { name: 'HubInvalidResponseError', message });
  }
});

t.test('a redirect is not followed, so that the token goes to no other server', async (t) => {
  const { client } = await against((_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end());
  await t.rejects(client.list(), { name: 'HubUnavailableError' });
  const elsewhere = new HubClient({ apiBaseUrl: 'http://192.0.2.1', token: 'secret-token' });
  await t.rejects(elsewhere.list(), { name: 'HubUnavailableError', message: /not a loopback/ });
});

t.test('a reset connection is retried once, only for requests without a side effect', async (t) => {
  let connections = 0;
  let proofs = 0;
  const reply = JSON.stringify([]);
  const server = createServer((socket) => {
    connections += 1;
    const isFirst = connections === 1;
    socket.on('error', () => undefined);
    socket.once('data', () => {
      if (isFirst) socket.resetAndDestroy();
      else socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${reply.length}\r\nconnection: close\r\n\r\n${reply}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const client = new HubClient(
    { apiBaseUrl: `http://127.0.0.1:${port}`, token: 'x' },
    {
      prove: async () => {
        proofs += 1;
      },
    },
  );
  t.strictSame(await client.list(), []);
  t.equal(connections, 2);
  t.equal(proofs, 2, 'the server proves itself again before the second try');
  connections = 0;
  await t.rejects(client.restart({ workspacePath: '/w' }), { name: 'HubUnavailableError', message: /does not answer/ });
  t.equal(connections, 1);
});

t.test('an unreachable Hub and an abort are distinct errors', async (t) => {
  const { hub, client } = await against(() => undefined);
  await t.rejects(client.list({ signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
  await hub.close();
  await t.rejects(client.list(), { name: 'HubUnavailableError', code: 'hubUnavailable', message: /ECONNREFUSED/ });
});

t.test('inspect() yields records with dates, and skips unknown kinds', async (t) => {
  const gone = { type: 'gone', id: 'x', at: new Date(0) };
  const { client } = await against((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const record of [{ type: 'news' }, gone]) response.write(`data: ${superjson.stringify(record)}\n\n`);
  });
  for await (const record of client.inspect()) {
    t.strictSame(record, gone);
    break;
  }
});
