/**
 * Relays to an agent server in a separate network. Each port of the agent server has a socket in the state directory of the
 * workspace. The Hub listens on a loopback port in front of each socket. Addresses are the same as for a local agent server.
 */
import { closeSync, constants, lstatSync, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { workspaceStateDirectory } from '../config/index.ts';
import { peerUidOf } from '../http/index.ts';
import { ensurePrivateDirectory } from '../supervise/index.ts';

export interface Relay {
  close(): void;
}

/** Port of an agent server, and whether only this user may connect, because it serves requests without a key. */
export interface RelayedPort {
  readonly port: number;
  readonly isOwnersOnly: boolean;
}

const host = '127.0.0.1';
const greetingMs = 5_000;
/** Longest wait for a client that does not close after the agent server has. */
const lingerMs = 2_000;
/** Connections of one port: another user of the machine may open them, too. */
const maxConnections = 512;

/** Socket directory of a workspace (0700). */
export const relayDirectory = (home: string, workspacePath: string): string =>
  join(workspaceStateDirectory(home, workspacePath), 'run');

/** First line of every connection to a socket. No other program sends it, so the Hub never passes a byte to another program. */
const greetingOf = (incarnation: string): Buffer => Buffer.from(`oratorio ${incarnation}\n`);

const nameOf = (port: number): string => `${port}.sock`;

/** Calls `use` with a path below the opened directory, which is short enough for a socket and follows no link. */
function below<T>(directory: string, port: number, use: (path: string) => T): T {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    return use(join('/proc/self/fd', String(fd), nameOf(port)));
  } finally {
    closeSync(fd);
  }
}

/** Passes bytes both ways until both directions have ended, or the client does not close after the agent server. */
export function joinSockets(client: Duplex, server: Duplex): void {
  const pairs = [
    [client, server],
    [server, client],
  ] as const;
  client.once('finish', () => {
    const timer = setTimeout(() => client.destroy(), lingerMs).unref();
    client.once('close', () => clearTimeout(timer));
  });
  for (const [from, to] of pairs) {
    from.on('error', () => to.destroy()).on('close', () => to.destroy());
    from.pipe(to);
  }
}

/** Relays that are opened and closed together. */
class Relays implements Relay {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Duplex>();

  /** @throws Error with the system's `code` */
  async listen(
    at: { readonly path: string } | { readonly host: string; readonly port: number },
    accept: (socket: Socket) => void,
  ) {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) => {
      this.track(socket);
      accept(socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ ...at, exclusive: true }, () => resolve());
    });
    server.maxConnections = maxConnections;
    server.on('error', () => {}).unref();
    this.#servers.push(server);
  }

  track<T extends Duplex>(socket: T): T {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy()).once('close', () => this.#sockets.delete(socket));
    return socket;
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Opens the sockets of an agent server, inside its place. @throws Error when a socket cannot be created */
export async function openRelaySockets(
  directory: string,
  ports: readonly number[],
  incarnation: string,
): Promise<Relay> {
  ensurePrivateDirectory(directory);
  const relays = new Relays();
  const greeting = greetingOf(incarnation);
  try {
    for (const port of new Set(ports)) {
      const accept = (outer: Socket) => {
        outer.write(greeting);
        joinSockets(outer, relays.track(connect({ host, port, allowHalfOpen: true, noDelay: true })));
      };
      rmSync(join(directory, nameOf(port)), { force: true });
      await below(directory, port, (path) => relays.listen({ path }, accept));
    }
  } catch (error) {
    relays.close();
    throw error;
  }
  return relays;
}

/** Opens the loopback ports of the Hub. @throws Error with the system's `code` when a port is taken */
export function openRelayPorts(directory: string, ports: readonly RelayedPort[], incarnation: string): Promise<Relay> {
  return openPorts(ports, (port, relays) => reach(directory, port, incarnation, relays));
}

/** Opens the loopback ports of the Hub in front of connections of a cluster. @throws Error with the system's `code` */
export function openForwardedPorts(
  ports: readonly RelayedPort[],
  forward: (port: number) => Promise<Duplex>,
): Promise<Relay> {
  return openPorts(ports, async (port, relays) => relays.track(await forward(port)));
}

async function openPorts(
  ports: readonly RelayedPort[],
  connectTo: (port: number, relays: Relays) => Promise<Duplex>,
): Promise<Relay> {
  const relays = new Relays();
  try {
    for (const { port, isOwnersOnly } of ports) {
      const accept = async (outer: Socket) => {
        if (isOwnersOnly && (await peerUidOf(outer)) !== process.getuid?.()) return outer.destroy();
        const inner = await connectTo(port, relays).catch(() => null);
        if (!inner || outer.destroyed) {
          inner?.destroy();
          return outer.destroy();
        }
        joinSockets(outer, inner);
        return outer;
      };
      await relays.listen({ host, port }, (outer) => void accept(outer));
    }
  } catch (error) {
    relays.close();
    throw error;
  }
  return relays;
}

/** Connects to a socket; resolves when the other end has sent the greeting. */
function reach(directory: string, port: number, incarnation: string, relays: Relays): Promise<Socket> {
  const greeting = greetingOf(incarnation);
  return new Promise((resolve, reject) => {
    const socket = below(directory, port, (path) => {
      if (!lstatSync(path).isSocket()) throw new Error(`${path} is not a socket`);
      return relays.track(connect({ path, allowHalfOpen: true }));
    });
    const refuse = () => {
      socket.destroy();
      reject(new Error('the agent server did not send the greeting'));
    };
    const timer = setTimeout(refuse, greetingMs);
    const onReadable = () => {
      const read: unknown = socket.read(greeting.length);
      if (read === null) return;
      clearTimeout(timer);
      socket.off('readable', onReadable).off('end', refuse).off('close', refuse);
      if (Buffer.isBuffer(read) && greeting.equals(read)) resolve(socket);
      else refuse();
    };
    socket.on('readable', onReadable).once('end', refuse).once('close', refuse);
  });
}
