/** TCP proxy in front of a PostgreSQL server. Its connections can fall silent, as behind a firewall that forgot them. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

export class SilentProxy {
  /** Path of the socket that new connections reach. */
  target: string;
  readonly #server = createServer((client) => this.#accept(client));
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #silent = new WeakSet<Socket>();
  #isVanished = false;

  private constructor(target: string) {
    this.target = target;
  }

  static async start(t: Test, target: string): Promise<SilentProxy> {
    const proxy = new SilentProxy(target);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => proxy.#close());
    return proxy;
  }

  /** The connection string of a database behind the proxy. */
  url(connectionString: string, query = ''): string {
    const { port } = this.#server.address() as AddressInfo;
    const [, database] = /\/([^/?]+)$/.exec(connectionString) ?? [];
    return `postgres://oratorio@127.0.0.1:${port}/${database}?sslmode=disable${query}`;
  }

  /** Forwards no byte of the present connections in either direction, and closes none. */
  swallow(): void {
    for (const pair of this.#pairs) for (const socket of pair) this.#silent.add(socket);
  }

  /** Like `swallow`, also for new connections: they are accepted and get no answer. */
  vanish(): void {
    this.#isVanished = true;
    this.swallow();
  }

  /** Closes the present connections. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  #accept(client: Socket): void {
    const server = connect(this.target);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    if (this.#isVanished) this.swallow();
    for (const [from, to] of [pair, [server, client] as const]) {
      from.on('error', () => {});
      from.on('data', (bytes) => {
        if (!this.#silent.has(from)) to.write(bytes);
      });
      from.on('close', () => {
        // The peer of a silent connection hears of its end as little as of anything else.
        if (this.#silent.has(from)) return;
        this.#pairs.delete(pair);
        to.destroy();
      });
    }
  }

  async #close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }
}
