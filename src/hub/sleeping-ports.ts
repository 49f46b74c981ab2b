import { connect, createServer, type Server, type Socket } from 'node:net';
import { peerUidOf } from '../http/index.ts';
import { acceptQueued } from '../lib/index.ts';
import { joinSockets } from '../places/index.ts';
import { defaults, hubErrors, type ServiceName } from '../protocol/index.ts';

const host = '127.0.0.1';
/**
 * Address of the Hub's listeners, which accepts the same connections as `host`. The kernel prefers the listener of an agent server at `host`
 * (inet_lhash2_lookup: AF_INET before AF_INET6). So both can listen, and the Hub gets the connections that no agent server accepts.
 */
const sharedHost = `::ffff:${host}`;
/** Settings may have disabled the service, or moved the agent server to another place. */
const notServed = 'The agent server no longer serves this address.';
const { wakeWaiting, wakeSilenceMs } = defaults.hub;

/** False outside of Linux: the user at the other end is unknown there, and two processes cannot share a port. */
export const canSharePorts = process.platform === 'linux';

/** Ports of a sleeping agent server, by service. */
export type ServicePorts = Readonly<Partial<Record<ServiceName, number>>>;

/**
 * Listens at the ports of an agent server that sleeps or falls asleep. The first bytes of a connection of this user wake the workspace;
 * the connection waits, and is passed on when the server listens at the same ports. Linux only.
 */
export class SleepingPorts {
  readonly #wanted: readonly [ServiceName, number][];
  readonly #open = new Map<ServiceName, Server>();
  readonly #waiting = new Map<Socket, number>();
  /** Waiting connections that have sent nothing, the oldest first. */
  readonly #silent = new Set<Socket>();
  readonly #joined: Set<Socket>;
  readonly #onRequest: () => void;
  /** Treatment of connections. */
  #state: 'waiting' | 'passing' | 'refusing' = 'waiting';
  #opening: Promise<unknown> = Promise.resolve();
  #passing: Promise<void> | undefined;
  #accepted = 0;
  /** Ports of the agent server to which connections are passed on. */
  #served: ReadonlySet<number> = new Set();

  /**
   * @param onRequest called for each connection that has sent something
   * @param joined both ends of the connections that this or an earlier object of the workspace has passed on
   */
  constructor(ports: ServicePorts, onRequest: () => void, joined = new Set<Socket>()) {
    this.#onRequest = onRequest;
    this.#joined = joined;
    this.#wanted = canSharePorts ? (Object.entries(ports) as [ServiceName, number][]) : [];
    this.open();
  }

  /** Tries again to listen at the ports that were taken. */
  open(): void {
    this.#opening = this.#opening.then(() =>
      Promise.all(this.#wanted.map(([service, port]) => this.#open.has(service) || this.#listen(service, port))),
    );
  }

  /** Ports at which it listens: not those that another program has taken. */
  async ports(): Promise<ServicePorts> {
    await this.#opening;
    const open = [...this.#open].flatMap(([service, server]) => {
      const address = server.address();
      return typeof address === 'object' && address !== null ? [[service, address.port] as const] : [];
    });
    return Object.fromEntries(open);
  }

  /**
   * The agent server listens: new connections are its own, and the waiting ones are passed on. A connection to a port that it no
   * longer has gets an error, because another program may take this port at once.
   *
   * @param endpoints addresses of the agent server
   */
  passOn(endpoints: Readonly<Record<string, string>>): Promise<void> {
    this.#passing ??= this.#passOn(new Set(Object.values(endpoints).map((url) => Number(URL.parse(url)?.port))));
    return this.#passing;
  }

  /** The agent server does not start: each waiting connection gets an HTTP error with the reason. */
  refuse(reason: string): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'refusing';
    this.#stopListening();
    const message = `The agent server of this workspace was asleep and has not started: ${reason}`;
    for (const socket of this.#waiting.keys()) answerRefusal(socket, message);
    this.#waiting.clear();
  }

  /** Ends everything, connections included that were passed on. */
  close(): void {
    this.#state = 'refusing';
    this.#stopListening();
    for (const socket of [...this.#waiting.keys(), ...this.#joined]) socket.destroy();
    this.#waiting.clear();
  }

  async #passOn(served: ReadonlySet<number>): Promise<void> {
    this.#served = served;
    await this.#opening;
    await acceptQueued(() => this.#accepted);
    if (this.#state !== 'waiting') return;
    this.#state = 'passing';
    this.#stopListening();
    for (const [socket, port] of this.#waiting) this.#join(socket, port);
    this.#waiting.clear();
  }

  async #listen(service: ServiceName, port: number, at = sharedHost): Promise<void> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) => {
      this.#accepted += 1;
      void this.#accept(socket, port);
    });
    const failure = await new Promise<string | undefined>((resolve) => {
      server.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => resolve(code));
      server.listen({ host: at, port, exclusive: true, reusePort: true }, () => {
        if (this.#state === 'waiting') this.#open.set(service, server);
        else server.close();
        resolve(undefined);
      });
    });
    server.on('error', () => {}).unref();
    // After EADDRINUSE, another program has the port, and the next start takes another one. Other failures mean a kernel without IPv6.
    if (failure !== undefined && failure !== 'EADDRINUSE' && at === sharedHost) await this.#listen(service, port, host);
  }

  async #accept(socket: Socket, port: number): Promise<void> {
    socket.on('error', () => socket.destroy()).once('close', () => this.#waiting.delete(socket));
    // The agent server would take a connection of another user for one of the Hub's own user.
    if ((await peerUidOf(socket)) !== process.getuid?.()) return void socket.destroy();
    if (socket.destroyed) return;
    // Without an agent server, a program of another user may have the port by now.
    if (this.#state === 'refusing')
      return answerRefusal(socket, 'The agent server of this workspace is not running. Start it: oratorio up');
    if (this.#state === 'passing') return this.#join(socket, port);
    if (this.#waiting.size >= wakeWaiting && !this.#dropSilent())
      return answerRefusal(socket, 'Too many requests wait for the start of this workspace.');
    this.#waiting.set(socket, port);
    this.#silent.add(socket);
    const timer = setTimeout(() => socket.destroy(), wakeSilenceMs).unref();
    const stopWaiting = () => {
      clearTimeout(timer);
      this.#silent.delete(socket);
    };
    socket.once('close', stopWaiting).once('readable', () => {
      stopWaiting();
      if (socket.readableLength === 0) socket.destroy();
      else if (this.#state === 'waiting') this.#onRequest();
    });
  }

  /** Makes room for a request. Returns false if each waiting connection has sent something. */
  #dropSilent(): boolean {
    const [oldest] = this.#silent;
    if (!oldest) return false;
    this.#silent.delete(oldest);
    this.#waiting.delete(oldest);
    oldest.destroy();
    return true;
  }

  #join(socket: Socket, port: number): void {
    if (!this.#served.has(port)) {
      answerRefusal(socket, notServed);
      return;
    }
    const inner = connect({ host, port, allowHalfOpen: true, noDelay: true });
    for (const each of [socket, inner]) {
      this.#joined.add(each);
      each.unref().once('close', () => this.#joined.delete(each));
    }
    inner.once('error', () => {
      if (inner.connecting || inner.pending) answerRefusal(socket, notServed);
    });
    inner.once('connect', () => joinSockets(socket, inner));
  }

  #stopListening(): void {
    for (const server of this.#open.values()) server.close();
    this.#open.clear();
  }
}

/** Answers in the forms of all faces: that of the Hub, and that of the chat API with `type` and `param`. */
function answerRefusal(socket: Socket, message: string): void {
  const code = 'workspaceUnavailable';
  const body = JSON.stringify({ error: { code, message, type: 'server_error', param: null, details: {} } });
  const head = [
    `HTTP/1.1 ${hubErrors[code].status} Service Unavailable`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `retry-after: ${defaults.hub.retryAfterMs / 1_000}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), defaults.hub.retryAfterMs).unref();
}
