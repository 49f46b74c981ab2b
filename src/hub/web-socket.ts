import { connect, type Socket } from 'node:net';
import { acceptOf, clientFrame, closeCode, FrameReader, newKey, opcodes } from '../lib/index.ts';

/** Longest message, and longest head of the answer to the upgrade. */
const maxBytes = 1_048_576;

/**
 * Opens a WebSocket (RFC 6455), sends one text and gives the first message that comes back. That is all a Hub ever asks of
 * a server; a whole client library would cost it 10 MiB.
 *
 * @param url `ws:`, with whatever token it carries
 * @param signal ends it; the caller's deadline
 * @throws Error saying what did not happen, never quoting the URL
 */
export function askOnce(url: string, text: string, signal: AbortSignal): Promise<string> {
  const { protocol, hostname, host, port, pathname, search } = new URL(url);
  if (protocol !== 'ws:') return Promise.reject(new Error(`${protocol} is not the protocol of a local WebSocket`));
  if (signal.aborted) return Promise.reject(new Error('aborted'));
  return new Promise((resolve, reject) => {
    const key = newKey();
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) });
    const finish = (outcome: Error | string) => {
      signal.removeEventListener('abort', abort);
      socket.destroy();
      if (typeof outcome === 'string') resolve(outcome);
      else reject(outcome);
    };
    const abort = () => finish(new Error('aborted'));
    signal.addEventListener('abort', abort, { once: true });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      finish(new Error(`the WebSocket failed (${error.code ?? error.message})`)),
    );
    socket.on('close', () => finish(new Error('the connection was closed')));
    socket.write(
      `GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    );
    let received: Buffer = Buffer.alloc(0);
    let readMessage: ((bytes: Buffer) => void) | undefined;
    socket.on('data', (chunk: Buffer) => {
      try {
        if (readMessage) return readMessage(chunk);
        received = Buffer.concat([received, chunk]);
        const end = endOfUpgrade(received, key);
        if (end === null) {
          if (received.length > maxBytes) throw new Error('the answer is too long');
          return;
        }
        socket.write(clientFrame(opcodes.text, Buffer.from(text)));
        readMessage = awaitMessage(socket, finish);
        readMessage(received.subarray(end));
      } catch (error) {
        finish(error instanceof Error ? error : new Error(String(error)));
      }
    });
  });
}

/** Length of the answer to the upgrade; null while it is not whole. @throws Error for one that is no WebSocket's */
function endOfUpgrade(bytes: Buffer, key: string): number | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [statusLine = '', ...headers] = bytes.toString('latin1', 0, end).split('\r\n');
  const [, status] = /^HTTP\/1\.1 (\d{3})\b/.exec(statusLine) ?? [];
  if (status !== '101') throw new Error(`the upgrade was answered with ${status ?? 'something else'}`);
  const accepted = headers.some((line) => {
    const [name = '', ...value] = line.split(':');
    return name.toLowerCase() === 'sec-websocket-accept' && value.join(':').trim() === acceptOf(key);
  });
  if (!accepted) throw new Error('the upgrade was not meant for us');
  return end + 4;
}

/** Takes bytes of the server and passes its first message on. */
function awaitMessage(socket: Socket, onMessage: (text: string) => void): (bytes: Buffer) => void {
  const frames = new FrameReader(maxBytes);
  const parts: Buffer[] = [];
  let length = 0;
  return (bytes) => {
    for (const { opcode, isFinal, payload } of frames.read(bytes)) {
      if (opcode === opcodes.close) throw new Error(`the WebSocket was closed (${closeCode(payload)})`);
      if (opcode === opcodes.ping) socket.write(clientFrame(opcodes.pong, payload));
      if (opcode > opcodes.binary) continue;
      parts.push(payload);
      length += payload.length;
      if (length > maxBytes) throw new Error('the answer is too long');
      if (isFinal) return onMessage(Buffer.concat(parts).toString());
    }
  };
}
