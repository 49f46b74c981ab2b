import { readdir, readFile, readlink } from 'node:fs/promises';

/** A socket that waits for connections. */
export interface Listener {
  /** Address in the kernel's notation, hexadecimal. */
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

const listening = '0A';

/** Lists the listening sockets of all users, as the kernel reports them. Empty on systems without these files. */
export async function listeners(): Promise<Listener[]> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readTable));
  return tables.flatMap(parseListeners);
}

/** Reads a table of `/proc/net`. */
export function parseListeners(table: string): Listener[] {
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    return state === listening ? [{ address, port: Number.parseInt(port, 16), inode }] : [];
  });
}

const loopback = /^(?:0100007F|0000000000000000FFFF00000100007F|0{24}01000000)$/;
const everywhere = /^0+$/;

/** Whether a listener is in the way of one on that host: the loopback meets only itself and listeners on all addresses. */
export function isInTheWay({ address }: Listener, host: '127.0.0.1' | '*'): boolean {
  return host === '*' || everywhere.test(address) || loopback.test(address);
}

/** A program that has one of these sockets, as far as we may look: `nginx (process 812)`. */
export async function holderOf(inodes: ReadonlySet<string>): Promise<string | null> {
  const wanted = new Set([...inodes].map((inode) => `socket:[${inode}]`));
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of processes) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const file of files) {
      // Files of other users' processes, and of those that have gone, cannot be read.
      const target = await readlink(`/proc/${pid}/fd/${file}`).catch(() => '');
      if (!wanted.has(target)) continue;
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
      return `${name.trim() || 'a program'} (process ${pid})`;
    }
  }
  return null;
}

/**
 * The program that listens on a port of the loopback: null when it belongs to another user, undefined when the port is free or the
 * system does not report listeners.
 */
export async function portHolder(port: number): Promise<string | null | undefined> {
  const found = (await listeners()).filter((socket) => socket.port === port && isInTheWay(socket, '127.0.0.1'));
  return found.length === 0 ? undefined : holderOf(new Set(found.map(({ inode }) => inode)));
}

const readTable = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // No IPv6, or not Linux: there are no listeners to report.
    if (error.code === 'ENOENT') return '';
    throw error;
  });
