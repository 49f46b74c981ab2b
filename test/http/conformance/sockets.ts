/** WebSockets, with `ws` and Node's own client. */
import { once } from 'node:events';
import type { Test } from 'tap';
import { WebSocket as WsClient } from 'ws';
import { HttpError, type Socket, type WebSocketRoute } from '../../../src/http/index.ts';
import { type Adapter, codeOf, eventually, exchange, patienceMs, RawClient, rawRequest, start } from '../support.ts';

interface Recorded {
  readonly route: WebSocketRoute<string>;
  readonly opened: Socket<string>[];
  readonly closes: { code: number; reason: string }[];
}

function recorded(overrides: Partial<WebSocketRoute<string>> = {}): Recorded {
  const opened: Socket<string>[] = [];
  const closes: { code: number; reason: string }[] = [];
  const route: WebSocketRoute<string> = {
    path: '/ws',
    auth: ({ query }) => {
      if (query.get('token') !== 'secret') throw new HttpError(401, 'unauthorized', 'No.');
      return 'somebody';
    },
    maxPayloadBytes: 1_000,
    maxBufferedBytes: 100_000,
    open: (socket) => opened.push(socket),
    message: (socket, text) => socket.send(`echo ${text}`),
    close: (_socket, code, reason) => closes.push({ code, reason }),
    ...overrides,
  };
  return { route, opened, closes };
}

const handshake = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

export function sockets(t: Test, adapter: Adapter): void {
  t.test('a refused upgrade is an ordinary answer', async (t) => {
    const { route, opened } = recorded();
    const { port } = await start(t, adapter, { routes: [], webSockets: [route] });
    const ask = (path: string, headers: Record<string, string>) => exchange(port, rawRequest('GET', path, headers));
    const unauthorized = await ask('/ws?token=wrong', handshake);
    t.equal(unauthorized.status, 401);
    t.equal(codeOf(unauthorized.body), 'unauthorized');
    t.equal((await ask('/ws?token=secret', { ...handshake, Host: 'evil.example' })).status, 403);
    t.equal((await ask('/ws?token=secret', { ...handshake, Origin: 'http://evil.example' })).status, 403);
    t.equal((await ask('/ws?token=secret', { ...handshake, 'Sec-Fetch-Site': 'same-site' })).status, 403);
    t.equal((await ask('/other', handshake)).status, 404);
    const plain = await ask('/ws?token=secret', {});
    t.equal(plain.status, 426);
    t.match(plain.head, /^upgrade: websocket\r$/im);
    const post = await exchange(port, rawRequest('POST', '/ws', { 'Content-Length': '0' }));
    t.equal(post.status, 405);
    t.match(post.head, /^allow: GET\r$/im);
    t.equal(opened.length, 0);
  });

  t.test('text is exchanged in both directions, and the handler gets principal and address', async (t) => {
    const { route, opened, closes } = recorded();
    const { port, server } = await start(t, adapter, { routes: [], webSockets: [route] });
    const builtIn = new WebSocket(`ws://127.0.0.1:${port}/ws?token=secret`);
    await once(builtIn, 'open');
    t.equal(opened[0]?.principal, 'somebody');
    t.equal(opened[0]?.remoteAddress, '127.0.0.1');
    t.equal(server.stats().webSockets, 1);
    t.equal(server.stats().connections, 1);
    builtIn.send('grüße');
    const [event] = (await once(builtIn, 'message')) as [MessageEvent];
    t.equal(event.data, 'echo grüße');
    builtIn.close(4_001, 'done');
    await eventually(() => closes.length === 1, 'the close is reported');
    t.strictSame(closes, [{ code: 4_001, reason: 'done' }]);
    await eventually(() => server.stats().connections === 0, 'no connection is left');
    opened[0]?.send('into the void');
    opened[0]?.close(1000, 'again');
    t.equal(opened[0]?.bufferedBytes, 0);
  });

  t.test('a binary message closes with 1003, a too long one with 1009', async (t) => {
    const { route, closes } = recorded();
    const { port } = await start(t, adapter, { routes: [], webSockets: [route] });
    const cases: [string | Buffer, number][] = [
      [Buffer.from('x'), 1003],
      ['x'.repeat(1_001), 1009],
    ];
    for (const [message, code] of cases) {
      const client = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
      await once(client, 'open');
      client.send(message);
      const [seen] = (await once(client, 'close')) as [number];
      t.equal(seen, code);
    }
    await eventually(() => closes.length === 2, 'both are reported');
    t.strictSame(closes.map(({ code }) => code).sort(), [1003, 1009]);
    const fits = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    await once(fits, 'open');
    fits.send('x'.repeat(1_000));
    await once(fits, 'message');
    fits.terminate();
  });

  t.test('a message far beyond the limit ends the connection', async (t) => {
    const { route, closes } = recorded();
    const { port } = await start(t, adapter, { routes: [], webSockets: [route] });
    const client = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    client.on('error', () => {});
    await once(client, 'open');
    client.send('x'.repeat(1_000_000));
    await once(client, 'close');
    await eventually(() => closes.length === 1, 'the close is reported');
    t.equal(closes[0]?.code, 1009);
  });

  t.test('a peer that does not read is closed with 1013', async (t) => {
    const { route, opened, closes } = recorded();
    const { port } = await start(t, adapter, { routes: [], webSockets: [route] });
    const client = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    await once(client, 'open');
    client.pause();
    const deadline = Date.now() + patienceMs;
    const text = 'x'.repeat(50_000);
    let sent = 0;
    while ((opened[0]?.bufferedBytes ?? 0) <= 100_000 && closes.length === 0 && Date.now() < deadline && sent < 2_000) {
      opened[0]?.send(text);
      sent += 1;
      if (sent % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    opened[0]?.send(text);
    t.ok(sent < 2_000, `${sent} messages of 50 kB before the bound was felt`);
    client.resume();
    const [code] = (await once(client, 'close')) as [number];
    t.equal(code, 1013);
    await eventually(() => closes.length === 1, 'the close is reported');
    t.equal(closes[0]?.code, 1013);
  });

  t.test('a throwing callback is reported as a bug and ends its socket only', async (t) => {
    const { route } = recorded({
      message: (socket, text) => {
        if (text === 'boom') throw new Error('boom');
        socket.send(text);
      },
      close: () => {
        throw new Error('boom at close');
      },
    });
    const { port, bugs } = await start(t, adapter, { routes: [], webSockets: [route] });
    const good = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    const bad = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    await Promise.all([once(good, 'open'), once(bad, 'open')]);
    bad.send('boom');
    const [code] = (await once(bad, 'close')) as [number];
    t.equal(code, 1011);
    await eventually(() => bugs.length === 2, 'both bugs are reported');
    good.send('still here');
    const [data] = (await once(good, 'message')) as [Buffer];
    t.equal(data.toString(), 'still here');
    good.terminate();
  });

  t.test('peers are pinged, and one that does not answer is disconnected', async (t) => {
    const { route, closes } = recorded();
    const { port, server } = await start(t, adapter, { routes: [], webSockets: [route], limits: { pingMs: 5_000 } });
    const answering = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    await once(answering, 'open');
    const mute = await RawClient.connect(t, port);
    mute.send(rawRequest('GET', '/ws?token=secret', handshake));
    await mute.until(/^HTTP\/1\.1 101 /);
    await eventually(() => mute.received.includes('\x89\x00'), 'a ping frame');
    await mute.untilClosed();
    await eventually(() => closes.length === 1, 'the close is reported');
    t.equal(closes[0]?.code, 1006);
    for (let pings = 0; pings < 3; pings += 1) await once(answering, 'ping');
    t.equal(server.stats().webSockets, 1, 'the one that answers stays');
    answering.terminate();
  });

  t.test('messages sent in one turn arrive in order', async (t) => {
    const { route } = recorded({
      open: (socket) => {
        for (let n = 0; n < 100; n += 1) socket.send(String(n));
      },
    });
    const { port } = await start(t, adapter, { routes: [], webSockets: [route] });
    const client = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    const seen: string[] = [];
    client.on('message', (data: Buffer) => seen.push(data.toString()));
    await eventually(() => seen.length === 100, 'all messages');
    t.strictSame(
      seen,
      Array.from({ length: 100 }, (_, n) => String(n)),
    );
    client.terminate();
  });

  t.test('messages sent in one turn before a close arrive in order, then its code', async (t) => {
    const { route } = recorded({
      maxBufferedBytes: 1_000_000,
      open: (socket) => {
        for (let n = 0; n < 10; n += 1) socket.send(`${n} ${'x'.repeat(n * 5_000)}`);
        socket.close(4_000, 'Enough.');
        socket.send('too late');
      },
    });
    const { port } = await start(t, adapter, { routes: [], webSockets: [route] });
    const client = new WsClient(`ws://127.0.0.1:${port}/ws?token=secret`);
    const seen: string[] = [];
    client.on('message', (data: Buffer) => seen.push(data.toString()));
    const [code] = (await once(client, 'close')) as [number];
    t.equal(code, 4_000);
    t.strictSame(
      seen.map((text) => text.split(' ', 1)[0]),
      Array.from({ length: 10 }, (_, n) => String(n)),
    );
    t.strictSame(
      seen.map((text) => text.length),
      Array.from({ length: 10 }, (_, n) => 2 + n * 5_000),
    );
  });
}
