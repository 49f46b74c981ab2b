/** The WebSocket of the client against `ws`, and against servers that break its protocol. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { type WebSocket, WebSocketServer } from 'ws';
import { TextSocket } from '../../src/client/web-socket.ts';

interface Connected {
  readonly socket: TextSocket;
  /** Its other side. */
  readonly peer: WebSocket;
  /** Texts received so far. */
  readonly texts: readonly string[];
  /** Resolves with the first text that has not been asked for. */
  readonly nextText: () => Promise<string>;
  readonly ended: Promise<readonly [code: number, reason: string]>;
}

async function connected(t: Test): Promise<Connected> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  t.teardown(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const texts: string[] = [];
  let wake = () => {};
  let read = 0;
  let end: (outcome: readonly [number, string]) => void = () => {};
  const ended = new Promise<readonly [number, string]>((resolve) => {
    end = resolve;
  });
  const socket = await new Promise<TextSocket>((resolve) => {
    const opening = new TextSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/path?token=x`, {
      onOpen: () => resolve(opening),
      onText: (text) => {
        texts.push(text);
        wake();
      },
      onEnd: (code, reason) => end([code, reason]),
    });
  });
  t.teardown(() => socket.close());
  const [peer] = (await accepted) as [WebSocket];
  const nextText = async () => {
    while (texts.length <= read) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return texts[read++] ?? '';
  };
  return { socket, peer, texts, nextText, ended };
}

/** Writes raw bytes of a frame to the client. */
function writeRaw(peer: WebSocket, bytes: readonly number[]): void {
  const { _socket: stream } = peer as unknown as { readonly _socket: NodeJS.WritableStream };
  stream.write(Buffer.from(bytes));
}

t.test('texts of every length arrive whole on both sides', async (t) => {
  const { socket, peer, nextText } = await connected(t);
  for (const length of [0, 1, 125, 126, 65_535, 65_536, 1_000_000]) {
    const text = 'é'.repeat(length >> 1).padEnd(length, 'x');
    const received = once(peer, 'message');
    socket.send(text);
    t.ok(String((await received)[0]) === text, `${length} sent`);
    peer.send(text);
    t.ok((await nextText()) === text, `${length} received`);
  }
});

t.test('fragments are joined, pings answered and binary messages ignored', async (t) => {
  const { peer, texts, nextText } = await connected(t);
  const pong = once(peer, 'pong');
  const [first, second] = [Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)];
  writeRaw(peer, [0x01, 1, ...first]);
  peer.ping('sign');
  writeRaw(peer, [0x80, 1, ...second]);
  t.equal(await nextText(), 'é');
  t.equal(String((await pong)[0]), 'sign');
  peer.send(Buffer.from('binary'));
  peer.send('text');
  t.equal(await nextText(), 'text');
  t.equal(texts.length, 2);
});

t.test('the close of the server is answered and reported with its code and reason', async (t) => {
  const { peer, socket, ended } = await connected(t);
  const closed = once(peer, 'close');
  peer.close(1013, 'overloaded');
  t.same(await ended, [1013, 'overloaded']);
  t.equal((await closed)[0], 1013);
  t.equal(socket.isOpen, false);
  socket.send('is not sent');
});

t.test('close ends both sides', async (t) => {
  const { peer, socket, ended } = await connected(t);
  const closed = once(peer, 'close');
  socket.close();
  t.equal(socket.isOpen, false);
  t.equal((await closed)[0], 1005);
  t.same(await ended, [1005, '']);
});

t.test('a server that is gone, or sends what is no frame, ends the connection', async (t) => {
  const gone = await connected(t);
  gone.peer.terminate();
  t.same(await gone.ended, [1006, '']);
  for (const bytes of [
    [0xc1, 0],
    [0x81, 0x81, 0, 0, 0, 0, 65],
    [0x81, 127, 0, 0, 1, 0, 0, 0, 0, 0],
  ]) {
    const broken = await connected(t);
    writeRaw(broken.peer, bytes);
    t.same(await broken.ended, [1002, ''], bytes.join(' '));
  }
});
