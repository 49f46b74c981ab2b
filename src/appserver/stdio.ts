import type { Readable, Writable } from 'node:stream';
import { LineSplitter } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { Connection, type ConnectionOptions } from './connection.ts';

export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly connection: Omit<ConnectionOptions, 'wire'>;
}

/** Stands for a line that is too long. It is no JSON, so it is answered as such. */
const tooLong = 'too long';

/**
 * One client on standard input and output, one JSON message per line. Resolves when the client has gone: at the end of
 * input, when the output breaks, or when it does not read its messages (`defaults.jsonRpc.bufferedBytes`). A line that is
 * too long is answered like one that is not JSON, and the next one is read as usual.
 */
export function serveStdio({ input, output, connection }: StdioOptions): Promise<void> {
  const { frameBytes, bufferedBytes } = defaults.jsonRpc;
  return new Promise((resolve) => {
    const client = new Connection({ ...connection, wire: { send } });
    const lines = new LineSplitter({
      maxBytes: frameBytes,
      longer: 'cut',
      onLine: (line, isCut) => {
        const frame = isCut ? tooLong : line.toString('utf8');
        if (frame.trim() !== '') client.receive(frame);
      },
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
