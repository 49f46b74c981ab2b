import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { listPids, ownerOf, type ProcessEntry, readEntry, readVariable } from './procfs.ts';
import { listEntriesByPs } from './ps.ts';

/** The environment variable that every descendant of a managed process inherits. Programs that clear or overwrite their environment escape it: a limit we state. */
export const markerVariable = 'ORATORIO_INCARNATION';

/** A line of the process table, with the marker found in the process' environment. */
export interface ScannedProcess extends ProcessEntry {
  /** `unknown`: not ours to read, or not available on this system. */
  readonly marker: { readonly value: string } | 'absent' | 'unknown';
}

/**
 * Whether a process carries `wanted`: that marker, or one below it. A child of a managed process may have a
 * marker of its own, so that it can be ended alone; it begins with the marker of the process and a slash.
 */
export function carries({ marker }: Pick<ScannedProcess, 'marker'>, wanted: string): boolean {
  if (wanted === '' || typeof marker === 'string') return false;
  return marker.value === wanted || marker.value.startsWith(`${wanted}/`);
}

const chunk = 64;
const maxPasses = 3;

/** Pauses before an empty environment is read again, in milliseconds: a process in the middle of `exec` shows none. */
const rereadPausesMs = [5, 10, 20, 40, 80];

/** Processes whose environment stayed empty: they were started without one, and no scan waits for them again. */
let withoutEnvironment: ReadonlySet<string> = new Set();

const keyOf = ({ pid, startedTicks }: ProcessEntry): string => `${pid}:${startedTicks}`;

/**
 * Processes in which the last scan found no marker. Their environment, which takes longer to read than all else, is not read again: a
 * process gets another one by `exec`, at other addresses, or at least of another length.
 */
let unmarked: ReadonlyMap<number, ProcessEntry> = new Map();

function isUnmarked({ pid, startedTicks, imageAt }: ProcessEntry): boolean {
  const before = unmarked.get(pid);
  return before !== undefined && before.startedTicks === startedTicks && before.imageAt === imageAt;
}

let running: Promise<unknown> = Promise.resolve();
let next: Promise<ScannedProcess[]> | undefined;

/**
 * The process table without this process, zombies included. A scan costs about 10 µs for each process of the machine, and as much
 * again for a process that the last scan did not see; it lets the event loop breathe, and all who ask before it begins share it, so
 * that stopping hundreds at once costs few scans.
 */
export function scanProcesses(): Promise<ScannedProcess[]> {
  next ??= running
    .then(() => nextTurn())
    .then(() => {
      next = undefined;
      const scan = process.platform === 'linux' ? scanProc() : scanByPs();
      running = scan.catch(() => {});
      return scan;
    });
  return next;
}

/** The process table without this process and without markers, zombies included: costs less than a scan. */
export async function readProcesses(): Promise<readonly ProcessEntry[]> {
  if (process.platform !== 'linux') return scanProcesses();
  return readTable((entry) => entry);
}

async function scanProc(): Promise<ScannedProcess[]> {
  const absent = new Map<number, ProcessEntry>();
  const starting: ProcessEntry[] = [];
  const found = await readTable((entry) => {
    const marker = isUnmarked(entry) || entry.zombie || isKernelThread(entry) ? 'absent' : readMarker(entry.pid);
    if (marker === 'absent' && entry.imageAt !== undefined) absent.set(entry.pid, entry);
    if (marker !== 'starting') return { ...entry, marker };
    starting.push(entry);
    return undefined;
  });
  unmarked = absent;
  return [...found.filter((entry) => entry !== undefined), ...(await readAgain(starting))];
}

/**
 * Reads the process table without this process, each process once. A process that ends during a pass may fork where the pass has
 * already been: then another pass looks for new processes. A process once read stays until a list lacks it, and by then its
 * children are in that list.
 */
async function readTable<T>(read: (entry: ProcessEntry) => T): Promise<T[]> {
  const seen = new Map<number, T>();
  for (let pass = 1; ; pass++) {
    const pids = listPids();
    const present = new Set(pids);
    for (const pid of seen.keys()) if (!present.has(pid)) seen.delete(pid);
    let moved = false;
    const fresh = pids.filter((pid) => pid !== process.pid && !seen.has(pid));
    for (const [index, pid] of fresh.entries()) {
      if (index % chunk === chunk - 1) await nextTurn();
      const entry = readEntry(pid);
      if (entry === 'gone') moved = true;
      if (typeof entry !== 'string') seen.set(pid, read(entry));
    }
    if (!moved || pass === maxPasses) return [...seen.values()];
  }
}

/** Reads the markers of processes with an empty environment until each shows one, or the pauses are over. */
async function readAgain(entries: readonly ProcessEntry[]): Promise<ScannedProcess[]> {
  const found: ScannedProcess[] = [];
  let waiting = entries.filter((entry) => !withoutEnvironment.has(keyOf(entry)));
  const absent = entries.filter((entry) => !waiting.includes(entry));
  for (const pauseMs of rereadPausesMs) {
    if (waiting.length === 0) break;
    await sleep(pauseMs);
    const read = waiting.map((entry) => ({ entry, marker: readMarker(entry.pid) }));
    found.push(...read.flatMap(({ entry, marker }) => (marker === 'starting' ? [] : [{ ...entry, marker }])));
    waiting = read.flatMap(({ entry, marker }) => (marker === 'starting' ? [entry] : []));
  }
  absent.push(...waiting);
  withoutEnvironment = new Set(absent.map(keyOf));
  return [...found, ...absent.map((entry) => ({ ...entry, marker: 'absent' as const }))];
}

/** Other users' processes are passed over without a look inside, by root too: they may carry any marker. */
function readMarker(pid: number): ScannedProcess['marker'] | 'starting' {
  if (ownerOf(pid) !== process.getuid?.()) return 'unknown';
  const read = readVariable(pid, markerVariable);
  if (read === 'empty') return 'starting';
  return read === 'gone' ? 'absent' : read;
}

/** Children of kthreadd, which has pid 2 where kernel threads are seen at all. */
const isKernelThread = ({ pid, parent }: ProcessEntry): boolean => parent === 2 || (pid === 2 && parent === 0);

async function scanByPs(): Promise<ScannedProcess[]> {
  const entries = process.platform === 'win32' ? [] : await listEntriesByPs();
  return entries.filter(({ pid }) => pid !== process.pid).map((entry) => ({ ...entry, marker: 'unknown' }));
}
