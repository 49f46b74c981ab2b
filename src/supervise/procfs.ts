import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, statSync } from 'node:fs';

/** Whether a process runs the program of this one. False where the system does not say so. */
export function runsThisProgram(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === readlinkSync('/proc/self/exe');
  } catch {
    return false;
  }
}

/** One line of the process table. `startedTicks` is opaque: compared for equality, never calculated with. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Absent: this system does not name it. */
  readonly session?: number;
  /** A zombie has ended with all its threads: it only waits for its parent to read the exit code. */
  readonly zombie: boolean;
  readonly startedTicks: string;
  /** Addresses of its arguments and environment, which change with each `exec`. Absent: this system does not show them. */
  readonly imageAt?: string;
}

/** Holds the file that is being read; most files of `/proc` are smaller. */
const buffer = Buffer.allocUnsafe(65_536);

/** First 4 KiB of a `/proc` file. `readFileSync` would take twice the system calls, and this is read for every process. */
function readSmall(path: string): string {
  const fd = openSync(path, 'r');
  try {
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, 4_096, null));
  } finally {
    closeSync(fd);
  }
}

/** A whole `/proc` file, of which the next call may overwrite the bytes. `readFileSync` would allocate 64 KiB for each. */
function readWhole(path: string): Buffer {
  const fd = openSync(path, 'r');
  try {
    for (let length = 0; ; ) {
      // No room left: the file is larger than the buffer.
      if (length === buffer.length) return readFileSync(path);
      const read = readSync(fd, buffer, length, buffer.length - length, null);
      if (read === 0) return buffer.subarray(0, length);
      length += read;
    }
  } finally {
    closeSync(fd);
  }
}

/** Reads one `/proc/PID/stat` (proc_pid_stat(5)). The command name may hold spaces and parentheses, so fields are counted from the last `)`. */
export function parseStat(text: string): ProcessEntry | undefined {
  const open = text.indexOf(' (');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, group, session] = fields;
  const [threads, , startedTicks] = fields.slice(17);
  const addresses = fields.slice(45, 49);
  if (open < 1 || state === undefined || startedTicks === undefined) return undefined;
  return {
    pid: Number(text.slice(0, open)),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    // The first thread may be dead while others still die, and with them go the ports and locks of the process.
    zombie: (state === 'Z' && Number(threads) <= 1) || state === 'X',
    startedTicks: startedTicks.trim(),
    // Zeros: of a kernel thread, or not ours to read.
    ...(addresses.length === 4 && !addresses.includes('0') && { imageAt: addresses.join(' ') }),
  };
}

/** The process table's line of `pid`; `unknown` when `/proc` cannot be read or has another format. */
export function readEntry(pid: number): ProcessEntry | 'gone' | 'unknown' {
  try {
    return parseStat(readSmall(`/proc/${pid}/stat`)) ?? 'unknown';
  } catch (error) {
    return isNoSuchProcess(error) && procIsMounted() ? 'gone' : 'unknown';
  }
}

/** Numbers of all processes that `/proc` shows us. */
export function listPids(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

/** Numeric owner of a process, or `undefined` when it has gone. A process that refuses to be dumped belongs to root here. */
export function ownerOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
}

/** The value of `name` in the environment `pid` was started with: `undefined` when absent, `unknown` when not ours to read. An empty environment is that of a process in the middle of `exec`, or of a kernel thread. */
export function readVariable(pid: number, name: string): { value: string } | 'absent' | 'empty' | 'gone' | 'unknown' {
  let environ: Buffer;
  try {
    environ = readWhole(`/proc/${pid}/environ`);
  } catch (error) {
    return isNoSuchProcess(error) ? 'gone' : 'unknown';
  }
  if (environ.length === 0) return 'empty';
  const key = `${name}=`;
  let at = environ.indexOf(key);
  while (at > 0 && environ[at - 1] !== 0) at = environ.indexOf(key, at + 1);
  if (at < 0) return 'absent';
  const end = environ.indexOf(0, at);
  return { value: environ.toString('utf8', at + key.length, end < 0 ? environ.length : end) };
}

/** Command line of a process, its words separated by spaces; empty when it is not ours to read, has gone, or has none. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** This boot of the machine: a record of another boot speaks of processes that are gone. */
export const readBootId = (): string => readSmall('/proc/sys/kernel/random/boot_id').trim();

/** Inode of our pid namespace: in another one the same number names another process. */
export const readPidNamespace = (): string => readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');

function procIsMounted(): boolean {
  return statSync('/proc/self/stat', { throwIfNoEntry: false }) !== undefined;
}

/** `/proc` answers ENOENT for a pid that is not there, and ESRCH when it goes while being read. */
function isNoSuchProcess(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ESRCH';
}

/** Members of a process group, at once and without yielding; empty when `/proc` cannot be listed. */
export function listGroup(group: number): ProcessEntry[] {
  try {
    return listPids()
      .map(readEntry)
      .filter((entry): entry is ProcessEntry => typeof entry !== 'string' && entry.group === group);
  } catch {
    return [];
  }
}
