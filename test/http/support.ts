/** A server under test, and a client on a bare socket that shows every byte of the answers. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Test } from 'tap';
import { createServer, type HttpServer, loopbackHosts, type ServerOptions } from '../../src/http/index.ts';

export type Adapter = 'uws' | 'uws-old' | 'node';

/** Time in which everything awaited in these tests arrives, also on a busy machine. */
export const patienceMs = 120_000;

export interface Running {
  readonly server: HttpServer;
  readonly port: number;
  readonly url: string;
  /** Errors that `onBug` has received. */
  readonly bugs: unknown[];
}

export type Options = Partial<Omit<ServerOptions, 'limits'>> & { readonly limits?: Partial<ServerOptions['limits']> };

export function optionsFrom({ limits, ...rest }: Options, bugs: unknown[]): ServerOptions {
  return {
    routes: [],
    hostAllowed: loopbackHosts(),
    errorBody: ({ code, message, details }) => ({ error: { code, message, details } }),
    onBug: (error) => bugs.push(error),
    ...rest,
    limits: {
      bodyBytes: 1_000,
      deadlineMs: 30_000,
      sseBufferBytes: 1_048_576,
      sseHeartbeatMs: 30_000,
      sseRetryMs: 2_000,
      ...limits,
    },
  };
}

export async function start(t: Test, adapter: Adapter, options: Options): Promise<Running> {
  const bugs: unknown[] = [];
  const server = await createServer(optionsFrom(options, bugs), adapter);
  t.equal(server.adapter, adapter === 'node' ? 'node' : 'uws');
  const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.close(0));
  return { server, port, url: `http://127.0.0.1:${port}`, bugs };
}

/** Resolves once `condition` holds; rejects when it does not come true in time. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + patienceMs;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export class RawClient {
  readonly socket: Socket;
  received = '';
  closed = false;
  /** Called with each piece that is received, and with an empty one at the close. */
  #changed: (piece: string) => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      this.received += chunk;
      this.#changed(chunk);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#changed('');
    });
  }

  /** Connects a client whose socket is destroyed with the test. */
  static async connect(t: Test, port: number): Promise<RawClient> {
    const client = await RawClient.open(port);
    t.teardown(() => client.socket.destroy());
    return client;
  }

  /** The caller destroys its socket. */
  static async open(port: number): Promise<RawClient> {
    const client = new RawClient(connect({ port, host: '127.0.0.1', noDelay: true }));
    await once(client.socket, 'connect');
    return client;
  }

  send(text: string): void {
    this.socket.write(text, 'latin1');
  }

  /** Resolves once `condition` holds for the received text. One at a time. */
  async #when(condition: (piece: string) => boolean, what: () => string): Promise<void> {
    if (condition(this.received)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`never happened: ${what()}`)), patienceMs);
    this.#changed = (piece) => {
      if (condition(piece)) resolve();
    };
    await promise.finally(() => clearTimeout(timer));
  }

  /** Waits until so many characters were received, or the connection is closed. */
  async untilLength(length: number): Promise<void> {
    await this.#when(
      () => this.received.length >= length || this.closed,
      () => `${length} characters`,
    );
  }

  /** Waits for this text in an answer of many megabytes. Searches each piece once, not all that was received before it. */
  async untilText(text: string): Promise<void> {
    let recent = '';
    let isThere = false;
    await this.#when(
      (piece) => {
        recent = recent.slice(-text.length) + piece;
        isThere ||= recent.includes(text);
        return isThere || this.closed;
      },
      () => text.slice(0, 100),
    );
    if (!isThere) throw new Error(`closed before ${text.slice(0, 100)}`);
  }

  /** Waits until the received text matches. */
  async until(pattern: RegExp): Promise<string> {
    await this.#when(
      () => pattern.test(this.received) || this.closed,
      () => `${pattern} in ${this.received.slice(0, 2_000)}`,
    );
    if (!pattern.test(this.received)) throw new Error(`closed before ${pattern}: ${this.received.slice(0, 2_000)}`);
    return this.received;
  }

  async untilClosed(): Promise<string> {
    await this.#when(
      () => this.closed,
      () => 'the connection closes',
    );
    return this.received;
  }
}

/** A request as its bytes; Host is set unless given. */
export function rawRequest(method: string, target: string, headers: Record<string, string> = {}, body = ''): string {
  const all: Record<string, string> = { Host: '127.0.0.1', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** An answer as its characters. */
export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  /** Empty for an answer without a length. */
  readonly body: string;
}

/** Sends one request on a connection of its own and closes it after the answer's head (and body, when it has a length). */
export async function exchange(port: number, request: string): Promise<RawAnswer> {
  const client = await RawClient.open(port);
  try {
    return await answerTo(client, request);
  } finally {
    client.socket.destroy();
  }
}

async function answerTo(client: RawClient, request: string): Promise<RawAnswer> {
  client.send(request);
  await client.until(/\r\n\r\n/);
  const length = Number(/^content-length: (\d+)/im.exec(client.received)?.[1] ?? 0);
  const headEnd = client.received.indexOf('\r\n\r\n') + 4;
  const expectsBody = !request.startsWith('HEAD ') && length > 0;
  if (expectsBody) await client.untilLength(headEnd + length);
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(client.received)?.[1]);
  return { status, head: client.received.slice(0, headEnd), body: client.received.slice(headEnd) };
}

/** Exchanges many requests, one after the other: a connection serves as long as the server keeps it, which takes half the time. */
export class Exchanges {
  readonly #port: number;
  #client: RawClient | undefined;

  /** Closes the connection with the test. */
  constructor(t: Test, port: number) {
    this.#port = port;
    t.teardown(() => this.#client?.socket.destroy());
  }

  async exchange(request: string): Promise<RawAnswer> {
    const kept = this.#client;
    const answer = kept && (await this.#onKept(kept, request));
    if (answer) return answer;
    this.#client = await RawClient.open(this.#port);
    return this.#on(this.#client, request);
  }

  /** Undefined if the server has closed the connection before it had the request. */
  async #onKept(client: RawClient, request: string): Promise<RawAnswer | undefined> {
    try {
      return await this.#on(client, request);
    } catch (error) {
      if (client.closed && client.received === '') return undefined;
      throw error;
    }
  }

  async #on(client: RawClient, request: string): Promise<RawAnswer> {
    const answer = await answerTo(client, request);
    client.received = '';
    if (!isComplete(request, answer) || /^connection: close/im.test(answer.head)) {
      client.socket.destroy();
      this.#client = undefined;
    }
    return answer;
  }
}

/** Whether no more of the answer can follow, as it does in a stream. */
function isComplete(request: string, { status, head, body }: RawAnswer): boolean {
  if (request.startsWith('HEAD ') || status === 204 || status === 304) return body === '';
  const [, length] = /^content-length: (\d+)/im.exec(head) ?? [];
  return length !== undefined && body.length === Number(length);
}

/** Code of an error body. */
export function codeOf(body: string): string {
  const parsed = JSON.parse(body) as { error: { code: string } };
  return parsed.error.code;
}
