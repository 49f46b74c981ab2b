import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { endianness } from 'node:os';
import { describeUser, type ListenAddress, plainHost, visible } from '../lib/index.ts';
import type { ProcessIdentity } from '../protocol/index.ts';
import { commandLine, listPids, readEntry, readVariable } from './procfs.ts';
import { carries, markerVariable } from './scan.ts';

/** A listening TCP socket, as the kernel lists it (proc_pid_net(5)). */
interface Listener {
  readonly inode: string;
  readonly uid: number;
}

const listening = '0A';
const rowPattern = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) \S+ \S+ \S+ +(\d+) +\d+ (\d+) /;
const maxCommandCharacters = 200;
const maxAncestors = 64;

/** Listeners that a connection to `address` may reach; undefined on systems other than Linux. */
function listenersAt({ host, port }: ListenAddress): Listener[] | undefined {
  if (process.platform !== 'linux') return undefined;
  const addresses = reachedBy(plainHost(host));
  return ['tcp', 'tcp6'].flatMap((table) =>
    readTable(table).flatMap((line) => {
      const [, address = '', portHex = '', state, uid, inode = ''] = rowPattern.exec(line) ?? [];
      const isReached = state === listening && Number.parseInt(portHex, 16) === port && addresses.has(address);
      return isReached ? [{ inode, uid: Number(uid) }] : [];
    }),
  );
}

function readTable(name: string): string[] {
  try {
    return readFileSync(`/proc/self/net/${name}`, 'latin1').split('\n');
  } catch {
    return [];
  }
}

/** Local addresses of listeners that answer for a loopback host, as the kernel prints them: words in the machine's byte order. */
function reachedBy(host: string): ReadonlySet<string> {
  const mapped = `${'0'.repeat(16)}${word('0000ffff')}`;
  const ipv4 = (address: string) => {
    const hex = word(Buffer.from(address.split('.').map(Number)).toString('hex'));
    return [hex, mapped + hex];
  };
  const ipv6 = [`${'0'.repeat(24)}${word('00000001')}`, '0'.repeat(32)];
  const any4 = [...ipv4('0.0.0.0'), '0'.repeat(32)];
  if (host === 'localhost') return new Set([...ipv4('127.0.0.1'), ...any4, ...ipv6]);
  return new Set(host.includes(':') ? ipv6 : [...ipv4(host), ...any4]);
}

/** Eight hexadecimal digits in network order, as the kernel prints the word. */
const word = (hex: string): string =>
  (endianness() === 'LE' ? (hex.match(/../g) ?? []).reverse().join('') : hex).toUpperCase();

/** A process of this user that has the socket open. */
function processWith({ inode }: Listener): number | undefined {
  return listPids().find((pid) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`);
    } catch {
      // Another user's, or gone.
      return false;
    }
  });
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function isOfTree(pid: number, { identity, marker }: StartedProcess): boolean {
  const found = readVariable(pid, markerVariable);
  if (typeof found === 'object' && carries({ marker: found }, marker)) return true;
  for (let [at, steps] = [pid, 0]; at > 1 && steps < maxAncestors; steps += 1) {
    if (at === identity.pid) return true;
    const entry = readEntry(at);
    if (typeof entry === 'string') return false;
    at = entry.parent;
  }
  return false;
}

/** Name of the owner of a socket, for a message. */
function ownerName(pid: number | undefined, uid: number): string {
  if (pid === undefined) return `A program of ${describeUser(uid)}`;
  const command = visible(commandLine(pid)).slice(0, maxCommandCharacters);
  return command === '' ? `Process ${pid}` : `Process ${pid} (${command})`;
}

/** A process that was started, and the marker that its descendants carry. */
export interface StartedProcess {
  readonly identity: ProcessIdentity;
  readonly marker: string;
}

/**
 * Name of a program that listens at `address`, for a message; null when none does. Linux only: null elsewhere.
 */
export function occupantOf(address: ListenAddress): string | null {
  const [first] = listenersAt(address) ?? [];
  return first === undefined ? null : ownerName(processWith(first), first.uid);
}

/**
 * Distinguishes the listener of a started process from that of another program, so that no secret is sent to the latter. A socket whose
 * process cannot be seen must at least belong to this user. Sockets found to be owned are remembered.
 */
export class ListenerCheck {
  readonly #address: ListenAddress;
  readonly #started: StartedProcess;
  readonly #owned = new Set<string>();

  constructor(address: ListenAddress, started: StartedProcess) {
    this.#address = address;
    this.#started = started;
  }

  /** `otherProgram` with the name of the other program; `none` while nothing listens; `own` on systems other than Linux. */
  poll(): 'own' | 'none' | { readonly otherProgram: string } {
    const listeners = listenersAt(this.#address);
    if (listeners === undefined) return 'own';
    for (const listener of listeners) {
      if (this.#owned.has(listener.inode)) continue;
      const pid = processWith(listener);
      const isOwned = pid === undefined ? listener.uid === process.getuid?.() : isOfTree(pid, this.#started);
      if (!isOwned) return { otherProgram: ownerName(pid, listener.uid) };
      this.#owned.add(listener.inode);
    }
    return listeners.length === 0 ? 'none' : 'own';
  }
}
