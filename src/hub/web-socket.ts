import { createHash, randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { plainHost } from '../lib/index.ts';

/** Longest message, and longest head of the answer to the upgrade. */
const maxBytes = 1_048_576;
const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/**
 * Opens a WebSocket (RFC 6455), sends one text and gives the first message that comes back. That is all a Hub ever asks of
 * a server; a whole client library would cost it 10 MiB.
 *
 * @param url `ws:`, with any token it carries
 * @param signal ends it; the caller's deadline
 * @throws Error naming the step that failed, never quoting the URL
 */
export function askOnce(url: string, text: string, signal: AbortSignal): Promise<string> {
  const { protocol, hostname, host, port, pathname, search } = new URL(url);
  if (protocol !== 'ws:') return Promise.reject(new Error(`${protocol} is not the protocol of a local WebSocket`));
  if (signal.aborted) return Promise.reject(new Error('aborted'));
  return new Promise((resolve, reject) => {
    const key = randomBytes(16).toString('base64');
    const socket = connect({ host: plainHost(hostname), port: Number(port || 80) });
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
    let read: Reader = awaitUpgrade(key, () => {
      socket.write(frame(opcodes.text, Buffer.from(text)));
      read = awaitMessage(socket, finish);
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      try {
        for (let taken = read(received); taken > 0; taken = read(received)) received = received.subarray(taken);
        if (received.length > maxBytes) throw new Error('the answer is too long');
      } catch (error) {
        finish(error instanceof Error ? error : new Error(String(error)));
      }
    });
  });
}

/** Reads frames from the beginning of the bytes and returns the number of bytes read: 0 when more must come first. */
type Reader = (bytes: Buffer) => number;

/** RFC 6455, section 4.2.2: the server's answer to our key, which proves that it accepts the WebSocket. */
const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

function awaitUpgrade(key: string, onOpen: () => void): Reader {
  return (bytes) => {
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) return 0;
    const [statusLine = '', ...headers] = bytes.toString('latin1', 0, end).split('\r\n');
    const [, status] = /^HTTP\/1\.1 (\d{3})\b/.exec(statusLine) ?? [];
    if (status !== '101') throw new Error(`the upgrade was answered with ${status ?? 'bytes that are not HTTP'}`);
    const accepted = headers.some((line) => {
      const [name = '', ...value] = line.split(':');
      return name.toLowerCase() === 'sec-websocket-accept' && value.join(':').trim() === acceptOf(key);
    });
    if (!accepted) throw new Error('the upgrade was not meant for us');
    onOpen();
    return end + 4;
  };
}

/** RFC 6455, section 5.2, the server's side: no extensions were offered, and nothing of it may be masked. */
function awaitMessage(socket: Socket, onMessage: (text: string) => void): Reader {
  const parts: Buffer[] = [];
  let length = 0;
  return (bytes) => {
    const [first = 0, second = 0] = bytes;
    if ((first & 0x70) !== 0 || (second & 0x80) !== 0) throw new Error('the WebSocket was not understood');
    const size = sizeOf(bytes);
    if (size === null) return 0;
    if (size.end > maxBytes) throw new Error('the answer is too long');
    if (bytes.length < size.end) return 0;
    const payload = bytes.subarray(size.begin, size.end);
    const opcode = first & 0x0f;
    if (opcode === opcodes.close) throw new Error(`the WebSocket was closed (${closeCode(payload)})`);
    if (opcode === opcodes.ping) socket.write(frame(opcodes.pong, payload));
    if (opcode <= opcodes.binary) {
      parts.push(payload);
      length += payload.length;
      if (length > maxBytes) throw new Error('the answer is too long');
      if ((first & 0x80) !== 0) onMessage(Buffer.concat(parts).toString());
    }
    return size.end;
  };
}

/** Where the payload of the first frame begins and ends; null while its head is not whole. */
function sizeOf(bytes: Buffer): { readonly begin: number; readonly end: number } | null {
  const short = (bytes[1] ?? 0) & 0x7f;
  const begin = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (bytes.length < begin) return null;
  const length = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
  return { begin, end: begin + length };
}

/** 1005: none was given. */
const closeCode = (payload: Buffer): number => (payload.length >= 2 ? payload.readUInt16BE(0) : 1005);

/** One whole frame of a client, masked as RFC 6455, section 5.3 asks for. */
function frame(opcode: number, payload: Buffer): Buffer {
  const mask = randomBytes(4);
  const head = Buffer.from([0x80 | opcode, 0x80 | Math.min(payload.length, 126)]);
  const long = Buffer.alloc(payload.length < 126 ? 0 : 2);
  if (long.length > 0) long.writeUInt16BE(payload.length);
  const masked = payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  return Buffer.concat([head, long, mask, masked]);
}
