import { connect } from 'node:net';
import { plainHost } from '../../lib/index.ts';
import { ChunkDecoder } from './chunks.ts';

export interface FeedRequest {
  /** `http:` with host and port. */
  readonly origin: URL;
  readonly path: string;
  readonly token: string;
  readonly signal: AbortSignal;
  /** Longest silence. */
  readonly silenceMs: number;
}

export interface FeedHandlers {
  /** Bytes have arrived. */
  readonly onSign: () => void;
  /** The next piece of the body, a view that holds until the call returns. */
  readonly onData: (piece: Buffer) => void;
}

const headBytes = 16_384;
/** A line end in it would begin a header of its own. */
const isPlainToken = /^[\x21-\x7e]*$/;
const endOfHead = '\r\n\r\n';

/** Buffer of every socket: its bytes are taken in before the next read. */
const received = Buffer.allocUnsafeSlow(65_536);

/**
 * Requests an endless answer of a local HTTP server, which is in chunks. A Hub has such a connection to each of its agent servers:
 * `node:http` takes five times the memory for one (bench `hub-lifecycle`).
 *
 * @returns the status of an answer other than 200; null when the answer has ended
 * @throws Error when the connection fails, is silent for too long, or carries something else
 */
export function readFeed(request: FeedRequest, { onSign, onData }: FeedHandlers): Promise<number | null> {
  const { origin, path, token, signal, silenceMs } = request;
  return new Promise((resolve, reject) => {
    if (!isPlainToken.test(token)) throw new Error('the token of the agent server is invalid');
    let head = '';
    let isInBody = false;
    const chunks = new ChunkDecoder();

    const take = (bytes: Buffer): void => {
      const body = isInBody ? bytes : takeHead(bytes);
      if (body) chunks.push(body, onData);
      if (chunks.isOver) finish(null);
    };
    /** @returns the bytes after the head; undefined while the head is incomplete, and for an answer without a feed */
    const takeHead = (bytes: Buffer): Buffer | undefined => {
      const before = head.length;
      head += bytes.toString('latin1');
      const end = head.indexOf(endOfHead);
      if (end < 0) {
        if (head.length > headBytes) throw new Error('the answer has too long a head');
        return undefined;
      }
      const status = statusOf(head.slice(0, end));
      head = '';
      if (status !== 200) {
        finish(status);
        return undefined;
      }
      isInBody = true;
      return bytes.subarray(end + endOfHead.length - before);
    };

    const socket = connect({
      host: plainHost(origin.hostname),
      port: Number(origin.port || 80),
      noDelay: true,
      onread: {
        buffer: received,
        callback(length, buffer) {
          try {
            onSign();
            take(Buffer.from(buffer.buffer, buffer.byteOffset, length));
          } catch (error) {
            socket.destroy(error instanceof Error ? error : new Error(String(error)));
          }
          return true;
        },
      },
    });
    const abort = () => socket.destroy();
    const finish = (status: number | null) => {
      signal.removeEventListener('abort', abort);
      resolve(status);
      socket.destroy();
    };
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    socket.setTimeout(silenceMs, () => socket.destroy(new Error('the agent server is silent')));
    socket.once('error', reject);
    socket.once('close', () => finish(null));
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${origin.host}\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    );
  });
}

/** @throws Error for a head that is not of HTTP, and for a feed that is not in chunks */
function statusOf(head: string): number {
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |\r|$)/.exec(head)?.[1]);
  if (Number.isNaN(status)) throw new Error('the answer is not of HTTP/1.1');
  if (status === 200 && !/\r\ntransfer-encoding:[ \t]*chunked[ \t]*(?:\r|$)/i.test(head))
    throw new Error('the answer is not in chunks');
  return status;
}
