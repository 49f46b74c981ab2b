/** Traffic between a page below `/w/<id>/` and the agent server behind it, on real sockets, on both HTTP servers. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { hubAuth } from '../../src/hub/auth.ts';
import { hubError, hubErrorBody } from '../../src/hub/errors.ts';
import { workspacePages } from '../../src/hub/pages/index.ts';
import { innerPathOf, pagePathOf } from '../../src/hub/pages/inner-path.ts';
import { defaults } from '../../src/protocol/index.ts';
import { type Adapter, codeOf, eventually, exchange, RawClient, rawRequest, start } from '../http/support.ts';

const ids = { a: 'aaaaaaaaaaaaaaaa', b: 'bbbbbbbbbbbbbbbb', none: 'cccccccccccccccc' };
const pageToken = 'page-token-page-token-page-token-page-token';
const ownerToken = 'owner-token-owner-token-owner-token-owner-t';
const hostToken = 'host-token-host-token-host-token-host-token';
const bearerOf = (token: string) => ({ Authorization: `Bearer ${token}` });

interface Inner {
  readonly origin: string;
  readonly token: string;
  readonly requests: IncomingMessage[];
  readonly sockets: WebSocket[];
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** Throws when the process has gone. */
  confirm: () => void;
}

/** A stand-in for the Dashboard of an agent server. */
async function innerServer(t: Test, name: string): Promise<Inner> {
  const requests: IncomingMessage[] = [];
  const sockets: WebSocket[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    inner.answer(request, response);
  });
  const upgrades = new WebSocketServer({ noServer: true, handleProtocols: () => 'oratorio' });
  server.on('upgrade', (request, socket, head) => {
    requests.push(request);
    if (request.url !== '/dashboard/ws') return socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
    upgrades.handleUpgrade(request, socket, head, (ws) => {
      sockets.push(ws);
      // At once: the page is not there yet.
      ws.send('hello');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  const inner: Inner = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: `inner-token-of-${name}-inner-token-of-${name}`,
    requests,
    sockets,
    answer: (request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ name, url: request.url }));
    },
    confirm: () => {},
  };
  return inner;
}

async function scene(t: Test, adapter: Adapter) {
  const inners = { [ids.a]: await innerServer(t, 'a'), [ids.b]: await innerServer(t, 'b') };
  const doubts: string[] = [];
  const revocations = new Set<() => void>();
  const pages = workspacePages({
    auth: (request) =>
      request.header('authorization') === `Bearer ${hostToken}`
        ? 'host'
        : hubAuth(ownerToken, () => pageToken)(request),
    isToken: (token, host) => token === pageToken || (host === null && token === hostToken),
    onRevoked(token, end) {
      if (token !== pageToken) return () => {};
      revocations.add(end);
      return () => void revocations.delete(end);
    },
    isKnown: ({ host, id }) => host === null && id in inners,
    async targetOf({ id }) {
      const inner = inners[id];
      if (!inner) throw hubError('notFound', 'There is no such workspace.');
      const { hostname, port } = new URL(inner.origin);
      const confirm = () => inner.confirm();
      return {
        origin: inner.origin,
        host: hostname,
        port: Number(port),
        token: inner.token,
        confirm,
        doubt: () => doubts.push(id),
      };
    },
  });
  t.teardown(() => pages.close());
  const { port, bugs, server } = await start(t, adapter, {
    routes: pages.routes,
    webSockets: pages.webSockets,
    guard: pages.guard,
    headers: pages.headers,
    errorBody: hubErrorBody,
  });
  t.teardown(() => {
    if (bugs.length > 0) throw bugs[0];
  });
  const [a, b] = [inners[ids.a], inners[ids.b]];
  if (!a || !b) throw new Error('both are there');
  const get = (path: string, headers: Record<string, string> = bearerOf(pageToken)) =>
    exchange(port, rawRequest('GET', path, headers));
  const revoke = () => {
    for (const end of [...revocations]) end();
  };
  return { a, b, port, get, doubts, server, revoke, revocations };
}

function proxy(t: Test, adapter: Adapter): void {
  t.test('regression: H8 the agent server gets its own token, and nothing else of the browser', async (t) => {
    const { a, get, port } = await scene(t, adapter);
    a.answer = (_request, response) => {
      response.writeHead(200, {
        'content-type': 'application/json',
        'set-cookie': 'a=b',
        location: 'http://evil.example/',
        'x-token': a.token,
        etag: '"7"',
        connection: 'close',
      });
      response.end('{"ok":true}');
    };
    const { status, head } = await get(`/w/${ids.a}/DashBoard/api/summary?q=%2F&token=${pageToken}`, {
      ...bearerOf(pageToken),
      Cookie: 'c=d',
      Origin: 'http://127.0.0.1',
      'Sec-Fetch-Site': 'same-origin',
      'Sec-Fetch-Mode': 'cors',
      'Last-Event-ID': 'x-7',
      'If-None-Match': '"6"',
      'X-Forwarded-For': '10.0.0.1',
      TE: 'trailers',
    });
    t.equal(status, 200);
    t.notMatch(head, /set-cookie|location|x-token|inner-token/i);
    t.match(head, /etag: "7"/i);
    t.match(head, /content-security-policy: default-src 'none'/i);
    t.match(head, /x-content-type-options: nosniff/i);
    const [request] = a.requests;
    t.equal(request?.url, '/DashBoard/api/summary?q=%2F', 'the token is in no address');
    t.strictSame(Object.keys(request?.headers ?? {}).sort(), [
      'authorization',
      'connection',
      'host',
      'if-none-match',
      'last-event-id',
    ]);
    t.match(request?.headers, { authorization: `Bearer ${a.token}`, host: new URL(a.origin).host });
    const body = '{"enabled":true}';
    const headers = {
      ...bearerOf(pageToken),
      'Content-Length': String(body.length),
      'Content-Type': 'application/json',
    };
    a.answer = (incoming, response) => void incoming.pipe(response);
    const posted = await exchange(port, rawRequest('POST', `/w/${ids.a}/dashboard/api/x`, headers, body));
    t.equal(posted.status, 200);
    t.equal(a.requests.at(-1)?.method, 'POST');
  });

  t.test('host, origin and token are asked in this order, before anything is passed on', async (t) => {
    const { a, b, get } = await scene(t, adapter);
    const path = `/w/${ids.a}/dashboard/api/page`;
    const refused = async (headers: Record<string, string>) => {
      const { status, body } = await get(path, headers);
      return `${status} ${codeOf(body)}`;
    };
    t.equal(await refused({ Host: 'evil.example' }), '403 hostNotAllowed');
    t.equal(await refused({ Origin: 'http://evil.example' }), '403 originNotAllowed');
    t.equal(await refused({ 'Sec-Fetch-Site': 'cross-site' }), '403 originNotAllowed');
    t.equal(await refused({ 'Sec-Fetch-Site': 'none', ...bearerOf(pageToken) }), '403 originNotAllowed');
    t.equal(
      await refused({ 'Sec-Fetch-Site': 'same-origin', Origin: 'http://evil.example', ...bearerOf(pageToken) }),
      '403 originNotAllowed',
    );
    t.equal(await refused({}), '401 unauthorized');
    t.equal(await refused(bearerOf(a.token)), '401 unauthorized', 'the token of the agent server opens nothing here');
    t.equal((await get(`/w/${ids.none}/dashboard/api/page`)).status, 404);
    t.equal((await get(`/w/${ids.none}/`, {})).status, 404);
    t.match(await get(`/w/${ids.a}`, {}), { status: 308, head: new RegExp(`location: /w/${ids.a}/\\r`) });
    for (const closed of ['login', 'logout', 'auth', 'exchange', 'proof', '%6Cogin'])
      t.equal((await get(`/w/${ids.a}/dashboard/api/${closed}`)).status, 404, closed);
    t.equal((await get(`/w/${ids.a}/v1/models`)).status, 404, 'only the Dashboard is passed on');
    t.equal(a.requests.length + b.requests.length, 0);
    t.equal((await get(path, bearerOf(ownerToken))).status, 200);
  });

  t.test('regression: the token of another Hub opens workspaces of this machine, and of no third one', async (t) => {
    const { a, get } = await scene(t, adapter);
    const here = `/w/${ids.a}/dashboard/api/x`;
    const there = `/h/build${here}`;
    t.equal((await get(here, bearerOf(hostToken))).status, 200);
    t.equal((await get(there, bearerOf(pageToken))).status, 200);
    t.equal(a.requests.length, 2);
    t.equal((await get(there, bearerOf(hostToken))).status, 401);
    t.equal(a.requests.length, 2);
  });

  t.test('the process is confirmed before each connection, and not again while one stands', async (t) => {
    const { a, get } = await scene(t, adapter);
    let confirmed = 0;
    a.confirm = () => {
      confirmed += 1;
    };
    const path = `/w/${ids.a}/dashboard/api/summary`;
    for (let round = 0; round < 3; round += 1) t.equal((await get(path)).status, 200);
    t.equal(confirmed, 1);
    t.equal(new Set(a.requests.map(({ socket }) => socket)).size, 1, 'one connection served all three');
    a.confirm = () => {
      throw hubError('workspaceUnavailable', 'It is gone.', {}, undefined, [['retry-after', '1']]);
    };
    a.answer = (request) => request.socket.destroy();
    const refused = await get(path);
    t.equal(refused.status, 503, 'the connection broke, and no other is opened');
    t.equal(codeOf(refused.body), 'workspaceUnavailable');
    t.match(refused.head, /retry-after: 1/i);
    t.equal(a.requests.length, 4, 'whoever has the port now gets no token');
  });

  t.test('answers that would run, lead away or log out do not come out', async (t) => {
    const { a, get, doubts } = await scene(t, adapter);
    const path = `/w/${ids.a}/dashboard/api/x`;
    const answering = async (status: number, headers: Record<string, string>, body = '') => {
      a.answer = (_request, response) => response.writeHead(status, headers).end(body);
      return get(path);
    };
    const html = await answering(200, { 'content-type': 'text/html' }, '<script>1</script>');
    t.match(html.head, /content-type: application\/octet-stream/i);
    t.match(html.head, /content-disposition: attachment/i);
    t.match(await answering(302, { location: 'http://evil.example' }), { status: 502, body: /badGateway/ });
    t.match(await answering(401, { 'www-authenticate': 'Bearer' }), { status: 502 });
    t.same(doubts, [ids.a], 'its token is asked for again');
    t.match(await answering(404, { 'content-type': 'application/json' }, '{"error":1}'), { status: 404 });
    t.match(await answering(304, { etag: '"1"' }), { status: 304 });
    a.answer = (request) => request.socket.destroy();
    t.match(await get(path), { status: 502, body: /badGateway/ });
  });

  t.test('regression: H8 an id never opens another workspace, with any path', async (t) => {
    const { a, b, port } = await scene(t, adapter);
    const piece = fc.constantFrom(
      ...['/', '..', '.', '%2e', '%2E%2e', '%2f', '%5c', '\\', ';', '//', 'dashboard', 'DashBoard', 'api', 'w', 'v1'],
      ...[ids.b, '%00', '%', 'ws', '@127.0.0.1', '?', '#', '%0d%0a', 'x'],
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
        const before = a.requests.length;
        const target = `/w/${ids.a}/dashboard/${pieces.join('')}`;
        const { status } = await exchange(port, rawRequest('GET', target, bearerOf(pageToken)));
        if (b.requests.length > 0) throw new Error(`${target} opened another workspace`);
        const url = a.requests[before]?.url ?? '/dashboard/none';
        if (!/^\/dashboard\/[^/]/.test(url) || new URL(url, a.origin).pathname !== url.split('?', 1)[0])
          throw new Error(`${target} became ${url}`);
        return status >= 200;
      }),
      { numRuns: 60, seed: 7 },
    );
    t.pass();
  });

  t.test('a page that reads slowly pauses the agent server, and gets everything', async (t) => {
    const { a, port } = await scene(t, adapter);
    const total = 48 * 1_048_576;
    const chunk = Buffer.alloc(65_536, 'x');
    let written = 0;
    a.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const pour = () => {
        while (written < total) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', pour);
        }
        response.end();
      };
      pour();
    };
    const client = await RawClient.connect(t, port);
    let received = 0;
    client.socket.removeAllListeners('data');
    client.socket.pause();
    client.send(rawRequest('GET', `/w/${ids.a}/dashboard/api/x`, { ...bearerOf(pageToken), Connection: 'close' }));
    let seen = -1;
    await eventually(() => written > 0, 'the agent server answers');
    while (seen !== written) {
      seen = written;
      await sleep(50);
    }
    t.ok(written < total / 2, `${written} bytes were taken of an agent server whose page reads nothing`);
    client.socket.on('data', (data: Buffer | string) => {
      received += data.length;
    });
    client.socket.resume();
    await eventually(() => received >= total, 'everything arrives');
    t.equal(written, total);
  });

  t.test('an event stream passes as it comes, and ends with its reader', async (t) => {
    const { a, port } = await scene(t, adapter);
    const { promise: open, resolve } = Promise.withResolvers<ServerResponse>();
    a.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': connected\n\n');
      resolve(response);
    };
    const client = await RawClient.connect(t, port);
    const headers = { ...bearerOf(pageToken), 'Last-Event-ID': 'boot-7' };
    client.send(rawRequest('GET', `/w/${ids.a}/dashboard/api/events/stream`, headers));
    const inner = await open;
    await client.until(/: connected\n\n/);
    t.equal(a.requests[0]?.headers['last-event-id'], 'boot-7');
    inner.write('id: boot-8\ndata: {}\n\n');
    await client.until(/id: boot-8\ndata: \{\}\n\n/);
    t.notMatch(client.received, /content-encoding/i);
    const closed = once(inner, 'close');
    client.socket.destroy();
    await closed;
    t.pass('the inner request has ended');
  });

  t.test('regression: a stream ends when its token is revoked, on both sides', async (t) => {
    const { a, port, revoke, revocations } = await scene(t, adapter);
    const { promise: open, resolve } = Promise.withResolvers<ServerResponse>();
    a.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': connected\n\n');
      resolve(response);
    };
    const client = await RawClient.connect(t, port);
    client.send(rawRequest('GET', `/w/${ids.a}/dashboard/api/events/stream`, bearerOf(pageToken)));
    const inner = await open;
    await client.until(/: connected\n\n/);
    const ends = [once(inner, 'close'), once(client.socket, 'close')];
    revoke();
    await Promise.all(ends);
    await eventually(() => revocations.size === 0, 'nothing watches the token');
  });
}

/** A browser's WebSocket: the token is a subprotocol. */
function openPage(port: number, path: string, protocols: readonly string[] = ['oratorio', pageToken], headers = {}) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, [...protocols], { headers, perMessageDeflate: false });
  const messages: string[] = [];
  socket.on('message', (data) => messages.push(String(data)));
  const outcome = new Promise<string>((resolve) => {
    socket.once('open', () => resolve(`open ${socket.protocol}`));
    socket.once('unexpected-response', (_request, response) => resolve(`refused ${response.statusCode}`));
    socket.on('error', () => {});
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  return { socket, messages, outcome, closed };
}

function tunnel(t: Test, adapter: Adapter): void {
  const path = `/w/${ids.a}/dashboard/ws`;

  t.test('a WebSocket passes frames both ways; only the name of the protocol is echoed', async (t) => {
    const { a, port, server } = await scene(t, adapter);
    const page = openPage(port, path);
    t.equal(await page.outcome, 'open oratorio');
    await eventually(() => page.messages.length > 0, 'the frame that came before the page');
    t.same(page.messages, ['hello']);
    const [inner] = a.sockets;
    const [request] = a.requests;
    t.match(request?.headers, {
      authorization: `Bearer ${a.token}`,
      host: new URL(a.origin).host,
      'sec-websocket-protocol': `oratorio,${a.token}`,
    });
    t.notOk(request?.headers.origin ?? request?.headers.cookie);
    const heard: string[] = [];
    inner?.on('message', (data) => heard.push(String(data)));
    for (let n = 0; n < 100; n += 1) page.socket.send(`up ${n}`);
    for (let n = 0; n < 100; n += 1) inner?.send(`down ${n}`);
    await eventually(() => heard.length === 100 && page.messages.length === 101, 'all frames');
    t.same(heard.at(-1), 'up 99');
    t.same(page.messages.at(-1), 'down 99');
    inner?.close(4_001, 'enough');
    t.equal(await page.closed, 4_001);
    const second = openPage(port, path);
    await second.outcome;
    a.sockets.at(-1)?.terminate();
    t.equal(await second.closed, 1_012, 'an agent server that has gone');
    const third = openPage(port, path);
    await third.outcome;
    const gone = once(a.sockets.at(-1) as WebSocket, 'close');
    third.socket.close();
    await gone;
    await eventually(() => server.stats().webSockets === 0, 'nothing is left open');
  });

  t.test('regression: a WebSocket ends when its token is revoked, on both sides', async (t) => {
    const { a, port, server, revoke, revocations } = await scene(t, adapter);
    const page = openPage(port, path);
    await page.outcome;
    const gone = once(a.sockets[0] as WebSocket, 'close');
    revoke();
    t.equal(await page.closed, 1_008);
    await gone;
    await eventually(() => server.stats().webSockets === 0, 'nothing is left open');
    t.equal(revocations.size, 0, 'nothing watches the token');
    const other = openPage(port, path);
    await other.outcome;
    other.socket.close();
    await eventually(() => revocations.size === 0, 'a page that closes is not watched any more');
  });

  t.test('a WebSocket needs host, origin, token and a path of the Dashboard', async (t) => {
    const { a, b, port } = await scene(t, adapter);
    const outcome = (protocols: readonly string[], headers = {}, at = path) =>
      openPage(port, at, protocols, headers).outcome;
    const good = ['oratorio', pageToken];
    t.equal(await outcome(good, { Origin: 'http://evil.example' }), 'refused 403');
    t.equal(await outcome(good, { Host: 'evil.example' }), 'refused 403');
    t.equal(await outcome(['oratorio']), 'refused 401');
    t.equal(await outcome(['oratorio', 'wrong-token']), 'refused 401');
    t.equal(await outcome([pageToken, 'oratorio']), 'refused 401');
    t.equal(await outcome([], {}, `${path}?token=${pageToken}`), 'refused 401', 'not in the address');
    t.equal(await outcome(['oratorio', a.token]), 'refused 401');
    t.equal(await outcome(['oratorio', hostToken], {}, `/h/build${path}`), 'refused 401', 'a third machine');
    t.equal(await outcome(good, {}, `/w/${ids.none}/dashboard/ws`), 'refused 404');
    t.equal(await outcome(good, {}, `/w/${ids.a}/ws`), 'refused 404');
    t.equal(await outcome(good, {}, `/w/${ids.a}/dashboard/../ws`), 'refused 404');
    t.equal(a.requests.length + b.requests.length, 0);
    t.equal(await outcome(good, {}, `/w/${ids.a}/dashboard/other`), 'refused 404');
  });

  t.test('a slow page pauses the agent server; a slow agent server costs the page its connection', async (t) => {
    const { a, port } = await scene(t, adapter);
    const page = openPage(port, path);
    await page.outcome;
    const [inner] = a.sockets;
    if (!inner) throw new Error('the inner socket is there');
    page.socket.pause();
    const frame = 'x'.repeat(1_048_576);
    const frames = 64;
    for (let n = 0; n < frames; n += 1) inner.send(frame);
    let seen = -1;
    while (seen !== inner.bufferedAmount) {
      seen = inner.bufferedAmount;
      await sleep(50);
    }
    t.ok(inner.bufferedAmount > (frames / 2) * frame.length, 'most of it waits at the agent server');
    page.socket.resume();
    await eventually(() => page.messages.length === frames + 1, 'everything arrives');
    inner.pause();
    const { tunnelUpBytes } = defaults.hub;
    for (let sent = 0; sent < 4 * tunnelUpBytes + 32 * 1_048_576; sent += frame.length) page.socket.send(frame);
    t.equal(await page.closed, 1_013);
  });
}

t.test('paths of pages', async (t) => {
  t.same(pagePathOf(`/w/${ids.a}/x`), { host: null, id: ids.a, rest: '/x' });
  t.same(pagePathOf(`/h/build/w/${ids.a}/x`), { host: 'build', id: ids.a, rest: '/x' });
  for (const none of [
    `/h/Build/w/${ids.a}/`,
    `/h/../w/${ids.a}/`,
    `/h//w/${ids.a}/`,
    `/h/build/x/w/${ids.a}/`,
    '/h/build/w/',
  ])
    t.equal(pagePathOf(none), undefined, none);
  for (const none of ['/w/', '/w/AAAAAAAAAAAAAAAA/', `/w/${ids.a}x/`, `/W/${ids.a}/`, `/w/${ids.a}%2f`])
    t.equal(pagePathOf(none), undefined, none);
  t.equal(
    innerPathOf('/dashboard/api/sessions/a%2Fb/events'),
    '/dashboard/api/sessions/a%2Fb/events',
    'as it was written',
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), fc.boolean(), (text, isBelow) => {
      const inner = innerPathOf(isBelow ? `/dashboard/${text}` : text);
      if (inner === undefined) return true;
      const url = new URL(`http://127.0.0.1${inner.split('?', 1)[0]}`);
      return url.host === '127.0.0.1' && /^\/dashboard\/./i.test(url.pathname);
    }),
    { numRuns: 2_000 },
  );
});

for (const adapter of ['uws', 'node'] as const) {
  t.test(adapter, async (t) => {
    proxy(t, adapter);
    tunnel(t, adapter);
  });
}
