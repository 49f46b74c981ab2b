import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { defaults } from '../protocol/index.ts';
import { Connection, type ConnectionOptions } from './connection.ts';

export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly connection: Omit<ConnectionOptions, 'wire'>;
}

/**
 * One client on standard input and output, one JSON message per line. Resolves at the end of input: the client has gone.
 * A line that is too long is answered as no JSON would be; a client that does not read ends the connection.
 */
export async function serveStdio({ input, output, connection }: StdioOptions): Promise<void> {
  const { frameBytes, bufferedBytes } = defaults.jsonRpc;
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  const client = new Connection({
    ...connection,
    wire: {
      send(frame) {
        if (output.writableLength > bufferedBytes) lines.close();
        else output.write(`${frame}\n`);
      },
    },
  });
  // A pipe that breaks is a client that has gone.
  output.on('error', () => lines.close());
  try {
    for await (const line of lines) {
      if (line.trim() === '') continue;
      client.receive(Buffer.byteLength(line) > frameBytes ? 'too long' : line);
    }
  } finally {
    client.close();
  }
}
