/** Stands in for the backend, and records its requests. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Delivery {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly bytes: number;
  readonly sha256: string;
  /** False: the gateway broke it off. */
  readonly isWhole: boolean;
}

export interface Upstream {
  readonly address: string;
  readonly deliveries: readonly Delivery[];
  /** Empties `deliveries`. */
  forget(): void;
  close(): Promise<void>;
}

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

/** Answers 202 to everything that arrives whole, once it is recorded. */
export async function startUpstream(): Promise<Upstream> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    record(request, response, (delivery) => deliveries.push(delivery));
  });
  // A request for a tunnel is recorded like any other, by its request line.
  for (const event of ['upgrade', 'connect'])
    server.on(event, (request: IncomingMessage, socket) => {
      deliveries.push({ ...whatOf(request), bytes: 0, sha256: '', isWhole: true });
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    deliveries,
    forget: () => void deliveries.splice(0),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function record(request: IncomingMessage, response: ServerResponse, keep: (delivery: Delivery) => void): void {
  const hash = createHash('sha256');
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    hash.update(chunk);
  });
  request.on('error', () => {});
  request.on('close', () => {
    if (!request.complete) keep({ ...whatOf(request), bytes, sha256: '', isWhole: false });
  });
  request.on('end', () => {
    keep({ ...whatOf(request), bytes, sha256: hash.digest('hex'), isWhole: true });
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"accepted":true}');
  });
}

function whatOf({
  method = '',
  url = '',
  rawHeaders,
}: IncomingMessage): Pick<Delivery, 'method' | 'target' | 'headers'> {
  const headers = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ''] as const] : []));
  return { method, target: url, headers };
}

/** The value of a header that stands there once. */
export function headerOf({ headers }: Delivery, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
}
