import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Socket } from 'node:net';

/** One end of a TCP connection, spelled as `endpoint` does. */
type Endpoint = string;

/** States of a connection whose client may still wait for an answer (include/net/tcp_states.h): half-closed ones are among them. */
const openStates: ReadonlySet<string> = new Set(['01', '04', '05', '08']);
const maxTableBytes = 16 * 1_048_576;
/** A table that changes while it is read may skip a row. */
const attempts = 3;

const found = new WeakMap<Socket, number | 'unknown'>();

/**
 * Uid of the process at the other end of a loopback connection, as the kernel has recorded it. Linux only: undefined
 * elsewhere, for a connection that comes from another machine or network namespace, and for one whose client has closed its
 * socket. A client that only ended its own direction still waits for the answer, and is known. Read once for each socket: a connection keeps its creator.
 */
export function peerUidOf(socket: Socket): number | undefined {
  if (process.platform !== 'linux') return undefined;
  let uid = found.get(socket);
  if (uid === undefined) {
    uid = lookUp(socket) ?? 'unknown';
    found.set(socket, uid);
  }
  return uid === 'unknown' ? undefined : uid;
}

function lookUp(socket: Socket): number | undefined {
  const { localAddress, localPort, remoteAddress, remotePort } = socket;
  const inode = inodeOf(socket);
  if (localAddress === undefined || remoteAddress === undefined || inode === undefined) return undefined;
  const ours = endpoint(localAddress, localPort ?? 0);
  const theirs = endpoint(remoteAddress, remotePort ?? 0);
  if (ours === undefined || theirs === undefined) return undefined;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const { rows, isFresh } = tables(attempt > 0);
    const { isOurs, uid } = uidOfPeer(ours, theirs, inode, rows);
    if (isOurs && uid !== undefined) return uid;
    // Rows of now that lack our own end: the client has gone, and another read would find no more.
    if (!isOurs && isFresh) return undefined;
  }
  return undefined;
}

let shared: readonly TcpRow[] | undefined;
let reads = 0;

/** Rows of the kernel's tables. All requests of one turn of the event loop share them, and at most `attempts` reads. */
function tables(isAgain: boolean): { readonly rows: readonly TcpRow[]; readonly isFresh: boolean } {
  if (shared && (!isAgain || reads >= attempts)) return { rows: shared, isFresh: false };
  if (!shared) setImmediate(forget);
  reads += 1;
  shared = ['/proc/self/net/tcp', '/proc/self/net/tcp6'].flatMap((table) => parseTcpTable(readTable(table)));
  return { rows: shared, isFresh: true };
}

function forget(): void {
  shared = undefined;
  reads = 0;
}

/**
 * Both rows must be there at once. Ours, with the inode of this very socket: otherwise the sender has gone, and the row of
 * the other end can be that of a process which got the same port since.
 */
function uidOfPeer(ours: Endpoint, theirs: Endpoint, inode: string, rows: readonly TcpRow[]) {
  let uid: number | undefined;
  let isOurs = false;
  for (const row of rows) {
    if (row.local === theirs && row.remote === ours && row.inode !== '0') uid = row.uid;
    else if (row.local === ours && row.remote === theirs && row.inode === inode) isOurs = true;
  }
  return { isOurs, uid };
}

/** Inode of the socket: what the kernel's table names it by. Node keeps the descriptor to itself. */
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

function readTable(path: string): string {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const chunks: Buffer[] = [];
    for (let size = 0; size < maxTableBytes; ) {
      const chunk = Buffer.allocUnsafe(65_536);
      const read = readSync(fd, chunk);
      if (read === 0) break;
      chunks.push(chunk.subarray(0, read));
      size += read;
    }
    return Buffer.concat(chunks).toString('latin1');
  } catch {
    return '';
  } finally {
    closeSync(fd);
  }
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
function endpoint(address: string, port: number): Endpoint | undefined {
  const octets = mapped.exec(address)?.[1]?.split('.').map(Number);
  if (octets?.[0] === 127) {
    return `${mappedPrefix}${octets.map((octet) => octet.toString(16).padStart(2, '0')).join('')}:${port}`;
  }
  return address === '::1' ? `${ipv6Loopback}:${port}` : undefined;
}
