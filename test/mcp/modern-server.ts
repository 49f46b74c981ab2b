import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import { Brain, type Message } from '../fixtures/mcp/brain.ts';

/** Request as received. */
export interface SeenRequest {
  readonly method: string | undefined;
  readonly rpcMethod: string | undefined;
  readonly headers: IncomingMessage['headers'];
}

/**
 * An MCP server of the 2026-07-28 era over streamable HTTP, by hand: no sessions, no `initialize`; a request whose stream
 * is cut is cancelled; changes are notified on the stream of `subscriptions/listen`.
 */
export class ModernServer {
  readonly requests: SeenRequest[] = [];
  /** Answers every request with this status instead. */
  status: number | undefined;
  /** `die` cuts the streams, where a server on pipes would exit. */
  readonly brain: Brain;
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #streams = new Set<ServerResponse>();

  private constructor(hasTasks: boolean) {
    this.brain = new Brain({ era: '2026', die: () => this.cut(), hasTasks });
  }

  static async start(t: Test, port = 0, hasTasks = false): Promise<ModernServer> {
    const server = new ModernServer(hasTasks);
    await server.listen(port);
    t.teardown(() => server.stop());
    return server;
  }

  /** Starts to listen, also after `stop`. */
  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  /** Ids of calls that were taken back. */
  get cancelled(): readonly unknown[] {
    return this.brain.cancelled;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** Ends every stream without a last word. */
  cut(): void {
    this.brain.forget();
    for (const stream of this.#streams) stream.destroy();
  }

  async stop(): Promise<void> {
    this.brain.close();
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request).catch(() => '');
    const message = body === '' ? undefined : JSON.parse(body);
    this.requests.push({ method: request.method, rpcMethod: message?.method, headers: request.headers });
    if (this.status !== undefined) return void response.writeHead(this.status).end('not today');
    if (request.method !== 'POST') return void response.writeHead(405).end();
    if (message.id === undefined) {
      this.brain.receive(message, () => {});
      return void response.writeHead(202).end();
    }
    this.#stream(message, response);
  }

  #stream(message: Message, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    this.#streams.add(response);
    response.on('close', () => {
      this.#streams.delete(response);
      this.brain.cancel(message.id);
    });
    this.brain.receive(message, (answer) => {
      if (response.destroyed) return;
      response.write(`data: ${JSON.stringify(answer)}\n\n`);
      if (answer.id !== undefined) response.end();
    });
  }
}
