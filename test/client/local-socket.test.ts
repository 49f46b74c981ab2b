/** The client's own WebSocket, against the server of `ws` and against bytes that no server may send. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type WebSocket, WebSocketServer } from 'ws';
import { LocalSocket } from '../../src/client/local-socket.ts';
import { openTextSocket, type SocketHandlers } from '../../src/client/text-socket.ts';
import { Frames } from '../../src/client/web-socket-frames.ts';

/** Events of a connection so far, and promises of the next ones. */
function recorded() {
  const texts: unknown[] = [];
  const errors: string[] = [];
  const { promise: opened, resolve: onOpen } = Promise.withResolvers<void>();
  const { promise: closed, resolve: close } = Promise.withResolvers<readonly [number, string]>();
  let wake = () => {};
  const handlers: SocketHandlers = {
    onOpen,
    onMessage(text) {
      texts.push(text);
      wake();
    },
    onClose: (code, reason) => close([code, reason]),
    onError: () => errors.push('error'),
  };
  const received = async (count: number) => {
    while (texts.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return texts;
  };
  return { handlers, errors, opened, closed, received };
}

/** A connection to a server of `ws`, at both ends. */
async function connected(t: Test) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  t.teardown(() => server.close());
  await once(server, 'listening');
  const record = recorded();
  const socket = openTextSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws?token=a`, record.handlers);
  t.ok(socket instanceof LocalSocket);
  t.notOk(socket.isOpen);
  const [peer, request] = (await once(server, 'connection')) as [WebSocket, { readonly url: string }];
  t.teardown(() => peer.terminate());
  await record.opened;
  t.ok(socket.isOpen);
  t.equal(request.url, '/ws?token=a');
  return { ...record, socket, peer };
}

t.test('texts of every kind of length arrive unchanged, in both directions', async (t) => {
  const { socket, peer, received } = await connected(t);
  const texts = [0, 1, 125, 126, 127, 65_535, 65_536, 300_000].map(
    (length) => 'é'.repeat(length >> 1) + 'x'.repeat(length & 1),
  );
  const heard: string[] = [];
  peer.on('message', (data) => {
    heard.push(String(data));
    peer.send(String(data));
  });
  for (const text of texts) socket.send(text);
  t.strictSame(await received(texts.length), texts);
  t.strictSame(heard, texts);
});

t.test('a text in parts is put together, and a ping between them is answered', async (t) => {
  const { peer, received } = await connected(t);
  const ponged = once(peer, 'pong');
  peer.send('one ', { fin: false });
  peer.ping('are you there');
  peer.send('two ', { fin: false });
  peer.pong();
  peer.send('three');
  peer.send(Buffer.from([1]), { binary: true });
  peer.send('next');
  t.strictSame(await received(2), ['one two three', 'next'], 'binary messages are left out');
  t.equal(String((await ponged)[0]), 'are you there');
});

t.test('a close by the server reports its code and reason', async (t) => {
  const { peer, socket, closed, errors } = await connected(t);
  peer.close(1001, 'going away');
  t.strictSame(await closed, [1001, 'going away']);
  t.notOk(socket.isOpen);
  t.strictSame(errors, []);
});

t.test('a close by the client reaches the server, and nothing is sent or received after it', async (t) => {
  const { peer, socket, closed, received } = await connected(t);
  const over = once(peer, 'close');
  socket.close();
  socket.send('too late');
  socket.close();
  t.strictSame(await closed, [1005, '']);
  t.equal((await over)[0], 1005);
  t.strictSame(await received(0), []);
});

t.test('a connection that breaks reports 1006', async (t) => {
  const { peer, closed } = await connected(t);
  peer.terminate();
  t.strictSame(await closed, [1006, '']);
});

/** A server that answers each handshake with these bytes. */
async function answering(t: Test, answer: (accept: string) => string | Buffer) {
  const server = createServer((_, response) => response.writeHead(403).end());
  server.on('upgrade', (request, socket) => {
    // A socket of a server stays open when the client has closed its half.
    socket.on('error', () => {});
    t.teardown(() => socket.destroy());
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    socket.write(answer(createHash('sha1').update(key).digest('base64')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const switching = (accept: string) =>
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;

t.test('a handshake that fails is an error, then a close', async (t) => {
  const refusing = await answering(t, () => 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
  const wrong = await answering(t, () => switching('something'));
  for (const url of [refusing, wrong, 'ws://127.0.0.1:1/']) {
    const { handlers, closed, errors } = recorded();
    const socket = new LocalSocket(url, handlers);
    t.strictSame(await closed, [1006, '']);
    t.strictSame(errors, ['error']);
    t.notOk(socket.isOpen);
  }
});

t.test('a connection that is closed before it is open is given up', async (t) => {
  const url = await answering(t, () => '');
  const { handlers, closed } = recorded();
  new LocalSocket(url, handlers).close();
  t.strictSame(await closed, [1006, '']);
});

const invalid = {
  'a reserved bit': [0xc1, 0],
  'a mask': [0x81, 0x80, 0, 0, 0, 0],
  'an unknown opcode': [0x83, 0],
  'an unknown control opcode': [0x8b, 0],
  'a continuation of nothing': [0x80, 0],
  'a text within a text': [0x01, 0, 0x81, 0],
  'a ping in parts': [0x09, 0],
  'a long ping': [0x89, 126, 0, 126],
  'a length beyond all numbers': [0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255],
  'a text that is not UTF-8': [0x81, 1, 0xff],
};

for (const [name, bytes] of Object.entries(invalid)) {
  t.test(`${name} ends the connection with an error`, async (t) => {
    const good = Buffer.from([0x81, 1, 0x61]);
    const url = await answering(t, (accept) =>
      Buffer.concat([Buffer.from(switching(accept)), good, Buffer.from(bytes)]),
    );
    const { handlers, closed, errors, received } = recorded();
    new LocalSocket(url, handlers);
    t.strictSame(await closed, [1006, '']);
    t.strictSame(errors, ['error']);
    t.strictSame(await received(1), ['a'], 'what came before is received');
  });
}

t.test('property: however the bytes of frames are cut, the same texts come out', async (t) => {
  const frame = (text: string): Buffer => {
    const body = Buffer.from(text);
    const head = body.length < 126 ? [0x81, body.length] : [0x81, 126, body.length >> 8, body.length & 255];
    return Buffer.concat([Buffer.from(head), body]);
  };
  const text = fc.string({ unit: 'grapheme', maxLength: 300 });
  const cutAnywhere = fc.property(
    fc.array(text, { maxLength: 5 }),
    fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
    (texts, cuts) => {
      const heard: string[] = [];
      const none = () => {
        throw new Error('there is no such frame');
      };
      const frames = new Frames({ onText: (each) => heard.push(each), onPing: none, onClose: none });
      const bytes = Buffer.concat(texts.map(frame));
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const length = cuts[turn % cuts.length] ?? 1;
        frames.push(bytes.subarray(at, at + length));
        at += length;
      }
      return JSON.stringify(heard) === JSON.stringify(texts);
    },
  );
  t.doesNotThrow(() => fc.assert(cutAnywhere));
});
