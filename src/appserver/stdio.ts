import type { Readable, Writable } from 'node:stream';
import { defaults } from '../protocol/index.ts';
import { Connection, type ConnectionOptions } from './connection.ts';

export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly connection: Omit<ConnectionOptions, 'wire'>;
}

/** Answer in the place of a line that was too long to store: not JSON. */
const tooLong = 'too long';

/**
 * One client on standard input and output, one JSON message per line. Resolves when the client has gone: at the end of
 * input, when the output breaks, or when it does not read what it is sent (`defaults.jsonRpc.bufferedBytes`). A line that is
 * too long is answered like one that is no JSON, and the next one is read as usual.
 */
export function serveStdio({ input, output, connection }: StdioOptions): Promise<void> {
  const { frameBytes, bufferedBytes } = defaults.jsonRpc;
  return new Promise((resolve) => {
    const client = new Connection({ ...connection, wire: { send } });
    const lines = new LineReader(frameBytes, (line) => {
      if (line.trim() !== '') client.receive(line);
    });
    const take = (chunk: Buffer | string) => lines.add(Buffer.from(chunk));
    const leave = () => {
      input.off('data', take).pause();
      client.close();
      resolve();
    };
    function send(frame: string): void {
      if (output.writableLength <= bufferedBytes) output.write(`${frame}\n`);
      // Unread output will never be read: the end of the process must not wait for it.
      else output.destroy(new Error('the client does not read'));
    }
    // A pipe that breaks is a client that has gone, and so is one that we break.
    output.on('error', leave).on('close', leave);
    input.on('error', leave).on('close', leave);
    input.on('end', () => {
      lines.end();
      leave();
    });
    input.on('data', take);
  });
}

const lineFeed = 0x0a;

/** Cuts bytes into lines of UTF-8, the last of which need not end. A line longer than `maxBytes` is not stored. */
class LineReader {
  readonly #maxBytes: number;
  readonly #onLine: (line: string) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number, onLine: (line: string) => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
  }

  add(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      this.end();
    }
    this.#keep(chunk.subarray(from));
  }

  /** Here a line ends. */
  end(): void {
    const line = this.#bytes > this.#maxBytes ? tooLong : Buffer.concat(this.#pieces).toString('utf8');
    this.#pieces = [];
    this.#bytes = 0;
    this.#onLine(line);
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }
}
