/** The handshake of specification §4.2 rule 2 as the Hub performs it, against a third-party server and against bare bytes. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type WebSocket, WebSocketServer } from 'ws';
import { introduce } from '../../src/hub/probe.ts';
import { unusedPort } from '../ports.ts';

const long = 120_000;
const answer = (serverInfo: object) => JSON.stringify({ jsonrpc: '2.0', id: 0, result: { serverInfo } });
const addressOf = (server: Pick<Server, 'address'>) =>
  `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws?token=sesame`;

/** Server of `ws` whose connections are handled by the test. */
async function serve(t: Test, onConnection: (socket: WebSocket, url: string) => void): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket, request) => onConnection(socket, request.url ?? ''));
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return addressOf(server);
}

/** A server that writes these bytes, in these pieces, once it has been asked. */
async function serveBytes(t: Test, respond: (socket: Socket, request: string) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('data', (request) => respond(socket, String(request)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return addressOf(server);
}

function upgradeFor(request: string): string {
  const [, key = ''] = /^sec-websocket-key: (.*)\r$/im.exec(request) ?? [];
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSEC-WebSocket-Accept: ${accept}\r\n\r\n`;
}

t.test('a probe sends the token and returns name and version of the server', async (t) => {
  const heard: unknown[] = [];
  const url = await serve(t, (socket, path) => {
    socket.on('message', (data) => {
      heard.push(path, JSON.parse(String(data)));
      socket.send(answer({ name: 'third party', version: '1.2', more: 'x'.repeat(70_000) }));
    });
  });
  t.strictSame(await introduce(url, 'the-test', long), { name: 'third party', version: '1.2' });
  t.match(heard, [
    '/ws?token=sesame',
    { jsonrpc: '2.0', id: 0, method: 'initialize', params: { clientInfo: { name: 'the-test' } } },
  ]);
});

t.test('pings are answered, fragments joined and pongs ignored', async (t) => {
  const url = await serve(t, (socket) => {
    socket.on('message', () => socket.ping('are you there'));
    socket.on('pong', (data) => {
      const text = answer({ name: 'fragmented', version: String(data) });
      socket.pong();
      socket.send(text.slice(0, 10), { fin: false });
      socket.send(text.slice(10, 20), { fin: false });
      socket.send(text.slice(20), { fin: true });
    });
  });
  t.strictSame(await introduce(url, 'x', long), { name: 'fragmented', version: 'are you there' });
});

t.test('an answer may arrive in any pieces', async (t) => {
  const payload = Buffer.from(answer({ name: 'é', version: '1' }));
  for (const size of [1, 2, 3, 7, 64, 1000]) {
    const url = await serveBytes(t, async (socket, request) => {
      const bytes = Buffer.concat([Buffer.from(upgradeFor(request)), Buffer.from([0x81, payload.length]), payload]);
      for (let at = 0; at < bytes.length; at += size) {
        socket.write(bytes.subarray(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    t.strictSame(await introduce(url, 'x', long), { name: 'é', version: '1' }, `${size} bytes each`);
  }
});

t.test('each invalid answer has its message, without the token', async (t) => {
  const refusing = createHttpServer((_, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
  await once(refusing, 'listening');
  t.teardown(() => refusing.close());
  const goneUrl = `ws://127.0.0.1:${await unusedPort()}/ws?token=sesame`;
  const after = (bytes: number[]) =>
    serveBytes(t, (socket, request) => {
      socket.write(upgradeFor(request));
      socket.write(Buffer.from(bytes));
    });
  const cases: [string, RegExp][] = [
    [addressOf(refusing), /answered with 401/],
    [goneUrl, /failed \(ECONNREFUSED\)/],
    [await serve(t, (socket) => socket.close(1013, 'overloaded')), /closed \(1013\)/],
    [await serve(t, (socket) => socket.on('message', () => socket.send('[]'))), /has an unexpected form/],
    [await serve(t, (socket) => socket.on('message', () => socket.send('not JSON'))), /has an unexpected form/],
    [await serveBytes(t, (socket) => socket.end()), /connection was closed/],
    [await serveBytes(t, (socket) => socket.write('SSH-2.0-x\r\n\r\n')), /bytes that are not HTTP/],
    [await serveBytes(t, (socket) => socket.write('HTTP/1.1 101 x\r\nSec-WebSocket-Accept: x\r\n\r\n')), /not meant/],
    [await serveBytes(t, (socket) => socket.write('x'.repeat(1_100_000))), /too long/],
    [await after([0x88, 0]), /closed \(1005\)/],
    [await after([0xc1, 1, 65]), /not understood/],
    [await after([0x81, 0x81, 0, 0, 0, 0, 65]), /not understood/],
    [await after([0x81, 127, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]), /too long/],
    ['nonsense', /Invalid URL/],
    ['wss://127.0.0.1/?token=sesame', /not the protocol/],
  ];
  for (const [url, message] of cases) {
    const error = await introduce(url, 'x', long).catch((reason: Error) => reason);
    t.match(error, { message }, String(message));
    t.notMatch((error as Error).message, 'sesame');
  }
});

t.test('endless fragments are refused as too long', async (t) => {
  const url = await serve(t, (socket) => {
    socket.on('message', () => {
      for (let sent = 0; sent < 20; sent++) socket.send('x'.repeat(100_000), { fin: false });
    });
  });
  await t.rejects(introduce(url, 'x', long), { message: /too long/ });
});

t.test('a missing answer fails at the deadline, and an abort ends the probe at once', async (t) => {
  const silent = await serve(t, () => undefined);
  await t.rejects(introduce(silent, 'x', 200), { message: 'no answer to initialize within 200 ms' });
  const stop = new AbortController();
  const waiting = introduce(silent, 'x', long, stop.signal);
  stop.abort();
  await t.rejects(waiting, { message: 'aborted' });
  await t.rejects(introduce(silent, 'x', long, stop.signal), { message: 'aborted' });
});

t.test('random bytes after the upgrade are an error', async (t) => {
  let bytes: Uint8Array = new Uint8Array();
  const url = await serveBytes(t, (socket, request) => {
    socket.write(upgradeFor(request));
    socket.end(bytes);
  });
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (some) => {
      bytes = some;
      const error = await introduce(url, 'x', long).catch((reason: unknown) => reason);
      return error instanceof Error;
    }),
    { numRuns: 300 },
  );
  t.pass('300 servers');
});
