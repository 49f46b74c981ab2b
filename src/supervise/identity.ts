import type { ProcessIdentity } from '../protocol/index.ts';
import { type ProcessEntry, readBootId, readEntry, readPidNamespace } from './procfs.ts';
import { readBootIdBySysctl, readEntryByPs } from './ps.ts';

/** Whether a process of a given identity exists. `unknown` must never lead to a signal, nor to a second start. */
export type Liveness = 'alive' | 'gone' | 'unknown';

let home: { bootId: string; pidNamespace: string } | undefined;

/** Where pids are numbers of: this boot and this pid namespace. Read once, neither changes while we run. */
function readHome(): { bootId: string; pidNamespace: string } {
  home ??= process.platform === 'linux' ? readLinuxHome() : { bootId: readOtherBootId(), pidNamespace: '' };
  return home;
}

/** Without `/proc` nothing is known of any process: an empty boot id makes every answer `unknown`. */
function readLinuxHome(): { bootId: string; pidNamespace: string } {
  try {
    return { bootId: readBootId(), pidNamespace: readPidNamespace() };
  } catch {
    return { bootId: '', pidNamespace: '' };
  }
}

const readOtherBootId = (): string => (process.platform === 'win32' ? '' : readBootIdBySysctl());

/** The process table's line of `pid`, zombies included, read with the means of this system. */
export function readProcess(pid: number): ProcessEntry | 'gone' | 'unknown' {
  if (process.platform === 'linux') return readEntry(pid);
  if (process.platform !== 'win32') return readEntryByPs(pid);
  return existsByNumber(pid) === 'gone' ? 'gone' : 'unknown';
}

/** Turns a line of the process table into an identity, which also names the boot and the namespace it was read in. */
export function identityOf(entry: Pick<ProcessEntry, 'pid' | 'startedTicks'>): ProcessIdentity {
  return { pid: entry.pid, startedTicks: entry.startedTicks, ...readHome() };
}

/** Identity of the process with this pid now. A zombie is gone. */
export function readIdentity(pid: number): ProcessIdentity | 'gone' | 'unknown' {
  const entry = readProcess(pid);
  if (typeof entry === 'string') return entry;
  return entry.zombie ? 'gone' : identityOf(entry);
}

/** This process. Where the system has no start times, `startedTicks` is empty and another process gets `unknown`. */
export function ownIdentity(): ProcessIdentity {
  const own = readIdentity(process.pid);
  return typeof own === 'string' ? identityOf({ pid: process.pid, startedTicks: '' }) : own;
}

/**
 * Whether exactly this process still exists: another start time under the same pid is another process, a record of
 * another boot is over, and a pid of another namespace cannot be judged from here.
 */
export function isAlive(identity: ProcessIdentity): Liveness {
  const entry = findProcess(identity);
  return typeof entry === 'string' ? entry : 'alive';
}

/** Returns the process table's line of a live process; otherwise the answer of `isAlive`. */
export function findProcess(identity: ProcessIdentity): ProcessEntry | 'gone' | 'unknown' {
  const { bootId, pidNamespace } = readHome();
  if (identity.bootId === '' || bootId === '') return existsByNumber(identity.pid) === 'gone' ? 'gone' : 'unknown';
  if (identity.bootId !== bootId) return 'gone';
  if (identity.pidNamespace !== pidNamespace) return 'unknown';
  const entry = readProcess(identity.pid);
  if (typeof entry === 'string') return entry;
  if (entry.zombie) return 'gone';
  if (identity.startedTicks === '') return 'unknown';
  return entry.startedTicks === identity.startedTicks ? entry : 'gone';
}

/** Whether any process has this number. EPERM means that it has, and is not ours. */
function existsByNumber(pid: number): Liveness {
  try {
    process.kill(pid, 0);
    return 'alive';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'gone' : 'alive';
  }
}
