/** A stand-in for the Engine API on a unix socket: every answer is the test's. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { temporaryDirectory } from '../hub/harness.ts';

interface Teardown {
  teardown(callback: () => unknown): void;
}

export interface FakeEngine {
  readonly socket: string;
  /** `GET /containers/x/json` for each request, in order. */
  readonly requests: string[];
  answer: (request: string, response: ServerResponse, incoming: IncomingMessage) => void;
  /** Body of the last request that had one. */
  body: string;
  /** Text that was written to the standard input of a container. */
  input: string;
}

/** An engine without containers. */
export async function fakeEngine(t: Teardown, { readsInput = true } = {}): Promise<FakeEngine> {
  const socket = join(temporaryDirectory(t), 'engine.sock');
  const engine: FakeEngine = {
    ...{ socket, requests: [], body: '', input: '' },
    answer: (_, response) => response.writeHead(404).end('{"message":"no such container"}'),
  };
  const server = createServer((incoming, response) => {
    const [path = ''] = (incoming.url ?? '').split('?');
    const request = `${incoming.method} ${path.replace(/^\/v[\d.]+/, '')}`;
    engine.requests.push(request);
    incoming.once('data', () => {
      engine.body = '';
    });
    incoming.on('data', (chunk) => {
      engine.body += chunk;
    });
    engine.answer(request, response, incoming);
  });
  const streams: Duplex[] = [];
  server.on('upgrade', (_, stream) => {
    streams.push(stream);
    stream.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    stream.on('error', () => {});
    if (!readsInput) return;
    stream.on('data', (chunk) => {
      engine.input += chunk;
    });
    stream.on('end', () => stream.end());
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  t.teardown(() => {
    server.closeAllConnections();
    for (const stream of streams) stream.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return engine;
}

/** Body of `GET /containers/x/json`. */
export const details = (
  labels: Readonly<Record<string, string>>,
  isRunning: boolean,
  exitCode = 0,
  name = `oratorio-${labels['dev.oratorio.incarnation']}`,
): string =>
  JSON.stringify({
    ...{ Id: 'x', Name: `/${name}`, Config: { Labels: labels } },
    State: { Status: isRunning ? 'running' : 'exited', Running: isRunning, Pid: 1, ExitCode: exitCode },
  });
