import { fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** One end of a TCP connection, spelled as `endpoint` does. */
type Endpoint = string;

/** States of a connection whose client may still wait for an answer (include/net/tcp_states.h): half-closed ones are among them. */
const openStates: ReadonlySet<string> = new Set(['01', '04', '05', '08']);
/** A table that changes while it is read may skip a row. */
const attempts = 3;
/** Sockets that wait for the next read. More are refused: a client without a key must not use up memory. */
const maxWaiting = 4_096;
/** Rest after a read, in times of its work on the event loop: other users cause reads with each connection. */
const restFactor = 4;
const maxRestMs = 1_000;

/** Result of a look-up; undefined: the peer is unknown, which admits no request. */
type Uid = number | undefined;

interface Waiting {
  readonly socket: Socket;
  readonly ours: Endpoint;
  readonly theirs: Endpoint;
  readonly inode: string;
  readonly resolve: (uid: Uid) => void;
  attempts: number;
  /** Facts of the present read. Both rows must be there in one read. */
  isOurs: boolean;
  uid: Uid;
}

/**
 * Passes rows of the kernel's tables to `visit`, until there are no more or `isDone`. Resolves with the milliseconds that it kept the
 * event loop busy.
 */
export type ReadTables = (visit: (row: TcpRow) => void, isDone: () => boolean) => Promise<number>;

/**
 * Finds the users at the other ends of loopback connections. One read of the kernel's tables serves all sockets that wait; at most
 * one read runs, and the next one begins after a rest in proportion to the work of the last.
 */
export class PeerLookUp {
  readonly #read: ReadTables;
  readonly #maxWaiting: number;
  readonly #found = new WeakMap<Socket, { readonly uid: Uid } | Promise<Uid>>();
  #waiting: Waiting[] = [];
  #isReading = false;
  /** End of the rest (performance.now()). */
  #restsUntil = 0;

  constructor(read: ReadTables = readTables, limit = maxWaiting) {
    this.#read = read;
    this.#maxWaiting = limit;
  }

  /** Uid of the peer, as `peerUidOf`. */
  uidOf(socket: Socket): Uid | Promise<Uid> | 'busy' {
    const known = this.#found.get(socket);
    if (known !== undefined) return known instanceof Promise ? known : known.uid;
    const { localAddress, localPort = 0, remoteAddress, remotePort = 0 } = socket;
    const ours = endpoint(localAddress, localPort);
    const theirs = endpoint(remoteAddress, remotePort);
    const inode = inodeOf(socket);
    if (ours === undefined || theirs === undefined || inode === undefined) {
      this.#found.set(socket, { uid: undefined });
      return undefined;
    }
    if (this.#waiting.length >= this.#maxWaiting) return 'busy';
    const { promise, resolve } = Promise.withResolvers<Uid>();
    this.#found.set(socket, promise);
    this.#waiting.push({ socket, ours, theirs, inode, resolve, attempts: 0, isOurs: false, uid: undefined });
    void this.#work();
    return promise;
  }

  async #work(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#waiting.length > 0) {
      const restMs = this.#restsUntil - performance.now();
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
      const workMs = await this.#readFor(this.#waiting.splice(0));
      this.#restsUntil = performance.now() + Math.min(maxRestMs, restFactor * workMs);
    }
    this.#isReading = false;
  }

  async #readFor(sockets: readonly Waiting[]): Promise<number> {
    const byRow = new Map<string, Waiting>();
    for (const each of sockets) {
      each.attempts += 1;
      each.isOurs = false;
      each.uid = undefined;
      byRow.set(each.ours + each.theirs, each).set(each.theirs + each.ours, each);
    }
    // A failed read costs a full rest.
    let workMs = Number.POSITIVE_INFINITY;
    try {
      workMs = await this.#read(
        ({ local, remote, uid, inode }) => {
          const of = byRow.get(local + remote);
          if (of === undefined) return;
          if (of.theirs === local) of.uid = inode === '0' ? of.uid : uid;
          // Our row has the inode of this very socket. Otherwise the sender has gone, and another process can have its port.
          else if (inode === of.inode) of.isOurs = true;
        },
        () => sockets.every(({ isOurs, uid }) => isOurs && uid !== undefined),
      );
    } catch {
      // Rows that were read count; the others are missing, and their sockets stay unknown.
    }
    for (const each of sockets) this.#decide(each);
    return workMs;
  }

  #decide(each: Waiting): void {
    const uid = each.isOurs ? each.uid : undefined;
    if (uid === undefined && each.attempts < attempts && !each.socket.destroyed) {
      this.#waiting.push(each);
      return;
    }
    this.#found.set(each.socket, { uid });
    each.resolve(uid);
  }
}

const peers = new PeerLookUp();

/**
 * Uid of the process at the other end of a loopback connection, as the kernel has recorded it. Linux only: undefined
 * elsewhere, for a connection that comes from another machine or network namespace, and for one whose client has closed its
 * socket. A client that only ended its own direction still waits for the answer, and is known. Read once for each socket: a
 * connection keeps its creator. `busy`: too many sockets wait; ask again later.
 */
export function peerUidOf(socket: Socket): Uid | Promise<Uid> | 'busy' {
  return process.platform === 'linux' ? peers.uidOf(socket) : undefined;
}

/** Inode of the socket: its name in the kernel's table. Node does not publish the descriptor. */
function inodeOf(socket: Socket): string | undefined {
  const { fd } = (socket as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle ?? {};
  if (fd === undefined || fd < 0) return undefined;
  try {
    return String(fstatSync(fd, { bigint: true }).ino);
  } catch {
    // Closed meanwhile.
    return undefined;
  }
}

/** An open connection in a table of `/proc/net` (proc_pid_net(5)). */
export interface TcpRow {
  readonly local: Endpoint;
  readonly remote: Endpoint;
  readonly uid: number;
  readonly inode: string;
}

const rowPattern =
  /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) ([0-9A-F]{2}) \S+ \S+ \S+ +(\d+) +\d+ (\d+) /;

/** Open connections of the text of `/proc/net/tcp` or `/proc/net/tcp6`. Other lines and states are left out. */
export function parseTcpTable(text: string): TcpRow[] {
  const rows: TcpRow[] = [];
  for (const line of text.split('\n')) {
    const [, localHex = '', localPort = '', remoteHex = '', remotePort = '', state, uid, inode = ''] =
      rowPattern.exec(line) ?? [];
    if (state === undefined || !openStates.has(state)) continue;
    rows.push({
      local: kernelEndpoint(localHex, localPort),
      remote: kernelEndpoint(remoteHex, remotePort),
      uid: Number(uid),
      inode,
    });
  }
  return rows;
}

/** Reads both tables at once: the kernel takes milliseconds for each, even for an empty one. */
async function readTables(...reader: Parameters<ReadTables>): Promise<number> {
  const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
  const [first = 0, second = 0] = await Promise.all(tables.map((table) => readTable(table, ...reader)));
  return first + second;
}

async function readTable(table: string, ...[visit, isDone]: Parameters<ReadTables>): Promise<number> {
  let workMs = 0;
  // A kernel without IPv6 has no second table.
  const file = await open(table, 'r').catch(() => undefined);
  if (file === undefined) return workMs;
  try {
    const buffer = Buffer.allocUnsafe(65_536);
    let rest = '';
    // A thread of libuv reads; the kernel gives a page at a time, so that other work of the event loop comes between.
    while (!isDone()) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) break;
      const begun = performance.now();
      const text = rest + buffer.toString('latin1', 0, bytesRead);
      const end = text.lastIndexOf('\n') + 1;
      for (const row of parseTcpTable(text.slice(0, end))) visit(row);
      rest = text.slice(end);
      workMs += performance.now() - begun;
    }
  } finally {
    await file.close();
  }
  return workMs;
}

const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** The kernel prints an address as words in the byte order of the machine. IPv4 becomes its IPv4-mapped form. */
function kernelEndpoint(hex: string, port: string): Endpoint {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.map((word) => (isLittleEndian ? (word.match(/../g) ?? []).reverse().join('') : word)).join('');
  return `${bytes.length === 8 ? mappedPrefix : ''}${bytes.toLowerCase()}:${Number.parseInt(port, 16)}`;
}

const mappedPrefix = '00000000000000000000ffff';
const mapped = /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})$/i;
const ipv6Loopback = `${'0'.repeat(31)}1`;

/** An endpoint of a loopback address; undefined for every other address. */
function endpoint(address: string | undefined, port: number): Endpoint | undefined {
  const octets = mapped
    .exec(address ?? '')?.[1]
    ?.split('.')
    .map(Number);
  if (octets?.[0] === 127) {
    return `${mappedPrefix}${octets.map((octet) => octet.toString(16).padStart(2, '0')).join('')}:${port}`;
  }
  return address === '::1' ? `${ipv6Loopback}:${port}` : undefined;
}
