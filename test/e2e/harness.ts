/** The installed product: the built `bin/oratorio.js`, in processes of its own, each test in a place of its own. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type AppServerClient,
  HubClient,
  proveServer,
  type ReceivedEvent,
  type RunningTurn,
  startThread,
  startTurn,
} from '../../src/client/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import type { HubLock } from '../../src/protocol/index.ts';
import {
  type Answer,
  configText,
  eventually,
  howItEnded,
  isAlive,
  killIfThere,
  readHubLock,
  request,
  type TestConfig,
} from '../hub/harness.ts';
import { programEnvironment } from '../programs.ts';
import { configureWorkspace } from '../workspace-config.ts';

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
export const command = at('bin/oratorio.js');

for (const built of ['dist/cli/main.cjs', 'dist/appserver/main.cjs', 'dist/ui/index.html']) {
  if (!existsSync(at(built))) throw new Error(`These tests run what is built, and there is no ${built}: npm run build`);
}

export interface Teardown {
  teardown(callback: () => unknown): void;
}

/** One directory with everything a test's processes may touch: user home, temporary directory, workspaces. */
export interface Place {
  readonly root: string;
  readonly home: string;
  /** The command line tool that is run here; default: that of this checkout. */
  readonly command?: string;
  /** Words that start each program, e.g. without a right of this user. */
  readonly launcher?: readonly string[];
  /** Environment as a user's shell would pass it on, without variables of this test process. */
  readonly env: Readonly<Record<string, string>>;
  /** Makes a workspace with this configuration. */
  workspace(name: string, config?: TestConfig): string;
}

/** Creates a place. After the test its processes are killed and its directory removed. */
export function makePlace(t: Teardown, prefix = 'oratorio-e2e-'): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  t.teardown(async () => {
    await endAll(root);
    // Worktrees of reviews cannot be written, by their owner either.
    execFileSync('chmod', ['-R', 'u+rwX', root]);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  });
  const home = join(root, 'home');
  const temporary = join(root, 'tmp');
  mkdirSync(temporary);
  return {
    root,
    home,
    env: {
      ...programEnvironment,
      HOME: root,
      // Compiled code of agent servers is not state: shared, it spares every place the work of the first start.
      XDG_CACHE_HOME: at('node_modules/.cache/oratorio-places'),
      TMPDIR: temporary,
      ORATORIO_HOME: home,
      ORATORIO_LOG: 'debug',
    },
    workspace(name, config = {}) {
      const directory = join(root, name);
      configureWorkspace({ home, workspace: directory }, JSON.parse(configText(config)));
      return directory;
    },
  };
}

/** Directory of the state of a workspace that `Place.workspace` has made. */
export const stateOf = (workspace: string): string =>
  workspaceStateDirectory(join(dirname(workspace), 'home'), workspace);

async function endAll(root: string): Promise<void> {
  await eventually(() => {
    const left = processesUnder(root);
    for (const { pid } of left) killIfThere(pid);
    return left.length === 0 || undefined;
  }, 'every process of the test is dead');
}

/** Program and arguments that run a script of the product. */
function launched({ launcher = [] }: Place, ...words: string[]): [string, string[]] {
  const [program = process.execPath, ...rest] = [...launcher, process.execPath];
  return [program, [...rest, ...words]];
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the command line tool to its end.
 *
 * @param onStdout sees everything written so far each time there is more
 */
export async function oratorio(
  place: Place,
  argv: readonly string[],
  onStdout: (text: string) => void = () => undefined,
): Promise<Ended> {
  const child = spawn(...launched(place, place.command ?? command, ...argv), {
    cwd: place.root,
    env: place.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    onStdout(stdout);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code, signal] = await once(child, 'close');
  return { code, signal, stdout, stderr };
}

/** Runs a command that must succeed; returns the document of `--json`. */
// biome-ignore lint/suspicious/noExplicitAny: documents of all commands, compared field by field
export async function oratorioJson(place: Place, ...argv: readonly string[]): Promise<any> {
  const { code, stdout, stderr } = await oratorio(place, [...argv, '--json']);
  if (code !== 0) throw new Error(`oratorio ${argv.join(' ')} ended with ${code}: ${stdout}${stderr}${hubLog(place)}`);
  return JSON.parse(stdout);
}

export const hubLog = ({ home }: Place): string =>
  existsSync(join(home, 'hub', 'hub.log')) ? readFileSync(join(home, 'hub', 'hub.log'), 'utf8') : '';

/** A Hub that serves. */
export interface BuiltHub {
  readonly lock: HubLock;
  readonly pid: number;
  readonly client: HubClient;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  kill(signal: NodeJS.Signals): Promise<void>;
  shutdown(): Promise<void>;
}

/** Starts `oratorio hub` and waits until it serves. Its output is in `hub.log`, as when a client starts it. */
export async function startHub(place: Place): Promise<BuiltHub> {
  mkdirSync(join(place.home, 'hub'), { recursive: true, mode: 0o700 });
  const { openSync, closeSync } = process.getBuiltinModule('node:fs');
  const log = openSync(join(place.home, 'hub', 'hub.log'), 'a', 0o600);
  const child = spawn(...launched(place, command, 'hub'), {
    cwd: place.home,
    env: place.env,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const lock = await eventually(() => {
    if (child.exitCode !== null) throw new Error(`the Hub ended with ${child.exitCode}: ${hubLog(place)}`);
    const published = readHubLock(place.home);
    return published?.pid === child.pid ? published : undefined;
  }, 'the Hub publishes its address');
  return hubAt(place, lock, child);
}

/** Hub that serves this home now, started by the test or by a command. */
export function runningHub(place: Place): BuiltHub {
  const lock = readHubLock(place.home);
  if (!lock) throw new Error('no Hub has published its address');
  return hubAt(place, lock);
}

/** Client that waits for the proof of a Hub as long as a busy machine needs: each request of a hundred at once asks for one. */
const patientClient = (lock: HubLock): HubClient =>
  new HubClient(lock, {
    prove: ({ apiBaseUrl, token = '' }, signal) =>
      proveServer({ role: 'hub', url: apiBaseUrl, token, signal, timeoutMs: 120_000 }),
  });

function hubAt(place: Place, lock: HubLock, child?: ChildProcess): BuiltHub {
  const client = patientClient(lock);
  const untilGone = () => eventually(() => !isAlive(lock.pid) || undefined, 'the Hub has ended');
  return {
    lock,
    pid: lock.pid,
    client,
    async call(method, path, body, headers = {}) {
      try {
        return await request(lock, method, path, body, headers);
      } catch (error) {
        // The Hub knows most about a missing answer.
        const state = child ? howItEnded(child) : `is process ${lock.pid}`;
        throw new Error(`${method} ${path}: the Hub ${state}, it said: ${hubLog(place)}`, { cause: error });
      }
    },
    async kill(signal) {
      process.kill(lock.pid, signal);
      await untilGone();
    },
    async shutdown() {
      await client.shutdown();
      await untilGone();
    },
  };
}

export interface Events {
  readonly seen: readonly ReceivedEvent[];
  /** The first event that fits, one already seen or one to come. */
  wait(kind: string, fits?: (event: ReceivedEvent) => boolean): Promise<ReceivedEvent>;
}

/** Everything the Hub publishes from now on. */
export async function followEvents(t: Teardown, client: HubClient): Promise<Events> {
  const closing = new AbortController();
  t.teardown(() => closing.abort());
  const seen: ReceivedEvent[] = [];
  await new Promise<void>((resolve, reject) => {
    const read = async () => {
      for await (const event of client.events({ signal: closing.signal, onOpen: resolve })) seen.push(event);
    };
    // Once it is open, its end is the end of the Hub or of the test.
    read().catch(reject);
  });
  return {
    seen,
    wait: (kind, fits = () => true) =>
      eventually(() => seen.find((event) => event.kind === kind && fits(event)), `event ${kind}`),
  };
}

/** Says something in a thread of its own. */
export async function say(client: AppServerClient, workspacePath: string, prompt: string): Promise<RunningTurn> {
  return startTurn(client, await startThread(client, { workspacePath }), prompt);
}

/** Complete answer of a turn. @throws the error that ends the turn early */
export async function answerOf(turn: RunningTurn): Promise<string> {
  let text = '';
  for await (const event of turn) if (event.type === 'message') text += event.text;
  return text;
}

export interface FoundProcess {
  readonly pid: number;
  readonly parent: number;
  readonly argv: readonly string[];
  readonly environment: readonly string[];
}

/** Resolves when no process of the test runs: one that is on its way out may end after its client. */
export const untilNoneRuns = ({ root }: Place): Promise<true> =>
  eventually(
    () => processesUnder(root).length === 0 || undefined,
    () => `these processes end: ${processesUnder(root).map(({ argv }) => argv.join(' '))}`,
  );

/**
 * Processes whose command line, environment or working directory lead into `root`.
 *
 * @param fits whether a process with this command line counts: of the others nothing more is read
 * @param isRead whether its command line is read at all
 */
export function processesUnder(
  root: string,
  fits: (argv: readonly string[], pid: number) => boolean = () => true,
  isRead: (pid: number) => boolean = () => true,
): FoundProcess[] {
  const found: FoundProcess[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || !isRead(pid)) continue;
    try {
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const argv = commandLine.split('\0');
      if (!fits(argv, pid)) continue;
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8');
      const traces = [commandLine, variables, readlinkSync(`/proc/${pid}/cwd`)];
      if (!traces.some((trace) => trace.includes(root))) continue;
      const environment = variables.split('\0');
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // Behind the name, which is in parentheses and may contain anything: state, parent.
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      found.push({ pid, parent, argv, environment });
    } catch {
      // The process has ended meanwhile, or belongs to another user.
    }
  }
  return found;
}

/** Reads after which a child has executed its own program: until then it has the command line of its parent. */
const enoughReads = 10;

/**
 * Agent servers of a Hub among them, by workspace.
 *
 * @param reads for a caller that polls: counts the reads of every other process, which is left out after some
 */
export function agentServersUnder(
  root: string,
  reads = new Map<number, number>(),
): { readonly pid: number; readonly workspace: string }[] {
  const readsOf = (pid: number): number => reads.get(pid) ?? 0;
  const isManaged = (argv: readonly string[], pid: number): boolean => {
    if (argv.includes('--managed')) return true;
    reads.set(pid, readsOf(pid) + 1);
    return false;
  };
  const managed = processesUnder(root, isManaged, (pid) => readsOf(pid) < enoughReads);
  const pids = new Set(managed.map(({ pid }) => pid));
  return (
    managed
      // A child of an agent server has its parent's command line until it executes its own program.
      .filter(({ parent }) => !pids.has(parent))
      .map(({ pid, argv }) => ({ pid, workspace: argv[argv.indexOf('--workspace') + 1] ?? '' }))
  );
}

/** Resources that the processes of a place hold at one moment, each with a unique name. */
export interface Inventory {
  readonly processes: readonly string[];
  /** Listening sockets, as `port inode`. */
  readonly sockets: readonly string[];
  /** Files below the place that one of its processes holds a lock on. */
  readonly locks: readonly string[];
  readonly files: readonly string[];
}

export function takeInventory({ root }: Place): Inventory {
  const processes = processesUnder(root);
  const listening = listeningSockets();
  const sockets = processes
    .flatMap(({ pid }) => socketInodes(pid))
    .filter((inode) => listening.has(inode))
    .map((inode) => `${listening.get(inode)} ${inode}`);
  const files = filesUnder(root);
  return {
    processes: processes.map(({ pid, argv }) => `${pid} ${argv.join(' ')}`),
    sockets,
    locks: lockedFiles(
      files,
      processes.map(({ pid }) => pid),
    ).map((file) => relative(root, file)),
    files: files.map((file) => relative(root, file)).sort(),
  };
}

/** Port by inode of every TCP socket in state LISTEN (0A). */
export function listeningSockets(): Map<string, number> {
  const found = new Map<string, number>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    if (!existsSync(table)) continue;
    for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      if (state === '0A') found.set(inode, Number.parseInt(local.split(':')[1] ?? '', 16));
    }
  }
  return found;
}

function socketInodes(pid: number): string[] {
  const directory = `/proc/${pid}/fd`;
  return namesIn(directory).flatMap((fd) => {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(targetOf(`${directory}/${fd}`)) ?? [];
    return inode === undefined ? [] : [inode];
  });
}

/** Empty for a process that has ended. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Empty for a descriptor that was closed meanwhile. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function filesUnder(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Files locked by `holders`. Inode numbers are unique within one file system only, so locks of other processes are ignored. */
function lockedFiles(files: readonly string[], holders: readonly number[]): string[] {
  const inodes = new Set(
    readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map((line) => / (\d+) \S+:(\d+) \d+ \S+$/.exec(line))
      .filter((lock) => holders.includes(Number(lock?.[1])))
      .map((lock) => lock?.[2]),
  );
  return files.filter((file) => inodes.has(String(statSync(file, { throwIfNoEntry: false })?.ino)));
}
