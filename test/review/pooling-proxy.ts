/**
 * Stand-in for pgbouncer in front of a PostgreSQL server. In transaction mode each transaction of a client runs on another connection to
 * the server, so the state of a session is lost between two of them. Notifications are dropped while no client uses the connection.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

export type PoolingMode = 'session' | 'transaction';

/** Parameters of a startup message that pgbouncer accepts without `ignore_startup_parameters`. */
const accepted = ['user', 'database', 'client_encoding', 'datestyle', 'timezone', 'application_name'];

interface PooledServer {
  readonly socket: Socket;
  client: PooledClient | undefined;
}

interface PooledClient {
  readonly socket: Socket;
  server: PooledServer | undefined;
  /** Messages that wait for a connection to the server. */
  waiting: Buffer[];
  /** Requests without a `ReadyForQuery`. */
  unanswered: number;
}

export class PoolingProxy {
  /** Path of the socket that new connections to the server reach. */
  target: string;
  readonly #mode: PoolingMode;
  readonly #database: string;
  readonly #size: number;
  readonly #listener = createServer((socket) => this.#accept(socket));
  readonly #clients = new Set<PooledClient>();
  readonly #servers = new Set<PooledServer>();
  readonly #idle: PooledServer[] = [];
  readonly #queue: PooledClient[] = [];

  private constructor(mode: PoolingMode, target: string, database: string, size: number) {
    this.#mode = mode;
    this.target = target;
    this.#database = database;
    this.#size = size;
  }

  /** @param size - largest number of connections to the server */
  static async start(
    t: Test,
    { mode, target, database, size }: Readonly<{ mode: PoolingMode; target: string; database: string; size: number }>,
  ): Promise<PoolingProxy> {
    const proxy = new PoolingProxy(mode, target, database, size);
    await once(proxy.#listener.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => proxy.#close());
    return proxy;
  }

  url(query = ''): string {
    const { port } = this.#listener.address() as AddressInfo;
    return `postgres://oratorio@127.0.0.1:${port}/${this.#database}?sslmode=disable${query}`;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Closes the connections to the server. Clients that use none of them stay connected. */
  cutServers(): void {
    for (const { socket } of this.#servers) socket.destroy();
  }

  #accept(socket: Socket): void {
    const client: PooledClient = { socket: socket.setNoDelay(), server: undefined, waiting: [], unanswered: 0 };
    this.#clients.add(client);
    socket.on('error', () => {});
    socket.once('close', () => this.#left(client));
    const [parseStartup, parse] = [messages(0), messages(1)];
    let isStarted = false;
    socket.on('data', (bytes) => {
      if (isStarted) for (const message of parse(bytes)) this.#fromClient(client, message);
      else for (const message of parseStartup(bytes)) isStarted = started(socket, message);
    });
  }

  #fromClient(client: PooledClient, message: Buffer): void {
    const type = String.fromCharCode(message[0] ?? 0);
    if (type === 'X') {
      client.socket.end();
      return;
    }
    if (type === 'Q' || type === 'S') client.unanswered += 1;
    if (client.server) {
      client.server.socket.write(message);
      return;
    }
    if (client.waiting.length === 0) this.#queue.push(client);
    client.waiting.push(message);
    this.#assign();
  }

  /** New connections come first, then the one that has been idle for longest: a client rarely gets the same one again. */
  #assign(): void {
    while (this.#queue.length > 0) {
      if (this.#servers.size < this.#size) this.#open();
      const server = this.#idle.shift();
      const client = server && this.#queue.shift();
      if (!client) return;
      server.client = client;
      client.server = server;
      for (const message of client.waiting.splice(0)) server.socket.write(message);
    }
  }

  #open(): void {
    const server: PooledServer = { socket: connect(this.target), client: undefined };
    this.#servers.add(server);
    let isReady = false;
    const parse = messages(1);
    server.socket.write(startup({ user: 'oratorio', database: this.#database }));
    server.socket.on('error', () => {});
    server.socket.on('data', (bytes) => {
      for (const message of parse(bytes)) {
        const isIdle = message[0] === code('Z') && message[5] === code('I');
        if (isReady) this.#fromServer(server, message, isIdle);
        else if (isIdle) {
          isReady = true;
          this.#idle.push(server);
          this.#assign();
        }
      }
    });
    server.socket.once('close', () => {
      this.#servers.delete(server);
      if (this.#idle.includes(server)) this.#idle.splice(this.#idle.indexOf(server), 1);
      // Without a server, the first client that waits gets the failure.
      const client = server.client ?? (isReady ? undefined : this.#queue.shift());
      client?.socket.end(failure('08P01', 'server conn crashed?'));
    });
  }

  #fromServer(server: PooledServer, message: Buffer, isIdle: boolean): void {
    const { client } = server;
    if (!client) return;
    client.socket.write(message);
    if (message[0] === code('Z')) client.unanswered -= 1;
    if (!isIdle || client.unanswered > 0 || this.#mode === 'session') return;
    client.server = undefined;
    server.client = undefined;
    this.#idle.push(server);
    this.#assign();
  }

  /** A transaction of the client ends with its connection to the server. */
  #left(client: PooledClient): void {
    this.#clients.delete(client);
    if (this.#queue.includes(client)) this.#queue.splice(this.#queue.indexOf(client), 1);
    if (!client.server) return;
    client.server.client = undefined;
    client.server.socket.destroy();
  }

  async #close(): Promise<void> {
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    for (const { socket } of [...this.#clients, ...this.#servers]) socket.destroy();
    await closed;
  }
}

const code = (character: string): number => character.charCodeAt(0);

/** Splits a stream into messages. @param typeBytes - 0 for the startup message, which has no type */
function messages(typeBytes: 0 | 1): (bytes: Buffer) => readonly Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const whole: Buffer[] = [];
    while (rest.length >= typeBytes + 4) {
      const length = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < length) break;
      whole.push(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    return whole;
  };
}

/** Answers the startup message of a client. @returns whether it was accepted */
function started(socket: Socket, message: Buffer): boolean {
  const words = message.subarray(8).toString().split('\0');
  const foreign = words.find((word, n) => n % 2 === 0 && word !== '' && !accepted.includes(word.toLowerCase()));
  if (foreign !== undefined) {
    socket.end(failure('08P01', `unsupported startup parameter: ${foreign}`));
    return false;
  }
  // Like pgbouncer, the proxy gives each client a key of its own instead of the one of a server.
  const key = framed('K', Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]));
  socket.write(Buffer.concat([framed('R', Buffer.alloc(4)), key, framed('Z', Buffer.from('I'))]));
  return true;
}

function startup(parameters: Readonly<Record<string, string>>): Buffer {
  const words = Object.entries(parameters).flat();
  const body = Buffer.from(`\0\u0003\0\0${words.join('\0')}\0\0`);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}

const failure = (state: string, text: string): Buffer => framed('E', Buffer.from(`SFATAL\0C${state}\0M${text}\0\0`));

function framed(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
