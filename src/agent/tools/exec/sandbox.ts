import { execFile } from 'node:child_process';
import { findProgram } from '../../../lib/index.ts';
import type { SandboxState } from '../../../protocol/index.ts';
import { closeBeforeStart } from '../../../supervise/index.ts';
import type { GitFinding } from './held-directory.ts';
import { floor, isolation, type SandboxNetwork, type SandboxPlaces } from './mounts.ts';
import { openMounts } from './open-mounts.ts';
import { sandboxExec, seatbeltProfile } from './seatbelt.ts';

/** `Tools.Shell.Sandbox`. */
export type SandboxMode = 'off' | 'auto' | 'required';

/** Whether commands run in a sandbox of the operating system. */
export interface SandboxStatus {
  readonly mode: SandboxMode;
  /** Whether they do. */
  readonly available: boolean;
  /** Why they do not; how they do. A sentence without a full stop. */
  readonly reason: string;
  /** Commands do not run: the sandbox of this workspace cannot be made, although the machine can make one. */
  readonly isRefused?: true;
}

/** The state in one word: `off` where commands run without it, `failed` where they are refused. */
export function sandboxStateOf({ mode, available, reason, isRefused }: SandboxStatus): SandboxState {
  if (available) return { state: 'on', reason };
  return { state: isRefused || mode === 'required' ? 'failed' : 'off', reason };
}

type Environment = Readonly<Record<string, string | undefined>>;
type Bubblewrap = { readonly program: string; readonly version: string } | { readonly problem: string };

const trialMs = 10_000;

/**
 * Everything readable, nothing writable but the workspace and an empty `/tmp`; processes of its own, which end with the command. The first
 * of them is not bubblewrap's own: bubblewrap exits without collecting that one, and leaves it to the first process of the system.
 */
const bubblewrapWords = (network: SandboxNetwork): readonly string[] => [...floor, ...isolation(network), '--as-pid-1'];

/** First process of a sandbox: waits for the command, collects its orphaned descendants, and passes on the exit code. */
const firstProcess: readonly string[] = ['/bin/sh', '-c', '"$0" "$@"; exit $?'];

/** Results of the trials of bubblewrap, by `PATH` and network. Each is made once. */
const found = new Map<string, Promise<Bubblewrap>>();

/**
 * Whether commands run in a sandbox with `mode`, and the reason. Tries a sandbox the first time, if `mode` asks for one.
 *
 * @param places of a workspace: a sandbox with exactly these mounts is tried, too
 */
export async function sandboxStatus(
  mode: SandboxMode,
  environment: Environment = process.env,
  network: SandboxNetwork = 'deny',
  places?: SandboxPlaces,
): Promise<SandboxStatus> {
  if (mode === 'off') return { mode, available: false, reason: 'Tools.Shell.Sandbox is off' };
  if (isMac) {
    const problem = await findSeatbelt();
    return { mode, available: problem === undefined, reason: problem ?? sandboxExec };
  }
  const bubblewrap = await findBubblewrap(environment, network);
  if ('problem' in bubblewrap) return { mode, available: false, reason: bubblewrap.problem };
  const problem = places === undefined ? undefined : await problemOf(places, environment);
  const how = `${bubblewrap.version}, ${bubblewrap.program}`;
  return problem === undefined
    ? { mode, available: true, reason: how }
    : { mode, available: false, reason: problem, isRefused: true };
}

/** Whether the program of the sandbox is installed, if `mode` asks for one. Starts no process: a trial may still fail. */
export function isSandboxInstalled(mode: SandboxMode, environment: Environment): boolean {
  if (mode === 'off') return false;
  return isMac || (process.platform === 'linux' && findProgram('bwrap', environment['PATH']) !== undefined);
}

/** Why no sandbox can be made for these places. */
async function problemOf(places: SandboxPlaces, environment: Environment): Promise<string | undefined> {
  const opened = await openSandbox('required', { ...places, cwd: places.workspacePath }, environment);
  if ('problem' in opened) return opened.problem;
  await opened.close();
  return undefined;
}

/** Places of a command with a sandbox of its own. */
export interface SandboxedCommand extends SandboxPlaces {
  readonly cwd: string;
}

/** Words to put before one command, and its end. */
export interface OpenSandbox {
  /** Empty: the command runs without a sandbox. */
  readonly words: readonly string[];
  /** Closes the sandbox after the end of the command. @returns entries that were set aside in git directories */
  readonly close: () => Promise<readonly GitFinding[]>;
  /** Leaves the sandbox to the next server. Absent: the sandbox ends with this server. */
  readonly handOver?: (() => void) | undefined;
}

const none: OpenSandbox = { words: [], close: async () => [] };

/**
 * Opens the sandbox of one command. With `auto`, a machine that can make no sandbox runs commands without one. Where only the places of this
 * workspace prevent it, the command is refused: a command must not be able to end the sandbox of the next one.
 */
export async function openSandbox(
  mode: SandboxMode,
  command: SandboxedCommand,
  environment: Environment,
): Promise<OpenSandbox | { readonly problem: string }> {
  if (mode === 'off') return none;
  const problem = await unavailable(environment, command.network);
  if (problem !== undefined) return mode === 'auto' ? none : { problem };
  const opened = await openMounts(command);
  const close = async () => {
    await opened.close();
    return opened.findings();
  };
  // Until it is closed: the kernel has ended every process of it by then.
  opened.begin(() => false);
  if (isMac) return { words: [sandboxExec, '-p', seatbeltProfile(command, opened.mounts)], close };
  const bubblewrap = await findBubblewrap(environment, command.network);
  if ('problem' in bubblewrap) return { problem: bubblewrap.problem };
  const mounts = [bubblewrap.program, ...bubblewrapWords(command.network), ...opened.words];
  const failure = await tryMounts(mounts);
  if (failure !== undefined) {
    await opened.close();
    return { problem: `bubblewrap cannot make the sandbox of this workspace: ${failure}` };
  }
  const { handOver } = opened;
  return {
    words: [...mounts, '--chdir', command.cwd, '--', ...firstProcess],
    close,
    ...(opened.isStored && { handOver }),
  };
}

/** Why no sandbox can be made on this machine. */
async function unavailable(environment: Environment, network: SandboxNetwork): Promise<string | undefined> {
  if (isMac) return findSeatbelt();
  const bubblewrap = await findBubblewrap(environment, network);
  return 'problem' in bubblewrap ? bubblewrap.problem : undefined;
}

const isMac = process.platform === 'darwin';
let seatbelt: Promise<string | undefined> | undefined;

/** Why there is no sandbox on this Mac; undefined: there is. Tried once. */
function findSeatbelt(): Promise<string | undefined> {
  const args = ['-p', '(version 1)(allow default)', '/usr/bin/true'];
  seatbelt ??= call(sandboxExec, args).then((trial) =>
    'problem' in trial ? `sandbox-exec cannot make a sandbox here: ${trial.problem}` : undefined,
  );
  return seatbelt;
}

/** The program, or why there is no sandbox. Tried once for each `PATH` and network. */
export function findBubblewrap(environment: Environment, network: SandboxNetwork): Promise<Bubblewrap> {
  const path = environment['PATH'] ?? '';
  const key = `${network} ${path}`;
  const known = found.get(key) ?? tryBubblewrap(path, network);
  found.set(key, known);
  return known;
}

/** Being installed is not enough: many containers and hardened kernels allow no user namespaces. */
async function tryBubblewrap(path: string, network: SandboxNetwork): Promise<Bubblewrap> {
  if (process.platform !== 'linux') return { problem: 'bubblewrap needs Linux' };
  const program = findProgram('bwrap', path);
  if (program === undefined) return { problem: 'bubblewrap (bwrap) is not installed' };
  const version = await call(program, ['--version']);
  if ('problem' in version) return { problem: `bwrap --version failed: ${version.problem}` };
  const trial = await call(program, [...bubblewrapWords(network), '--', '/bin/sh', '-c', 'exit 0']);
  if ('problem' in trial) return { problem: `bubblewrap cannot make a sandbox here: ${trial.problem}` };
  return { program, version: version.output };
}

/** Mounts that were tried with success, newest last. */
const tried = new Set<string>();
const maxTried = 50;

/** Why a sandbox with these words cannot be made. */
async function tryMounts([program = '', ...words]: readonly string[]): Promise<string | undefined> {
  const key = [program, ...words].join('\0');
  if (tried.has(key)) return undefined;
  const trial = await call(program, [...words, '--', '/bin/sh', '-c', 'exit 0']);
  if ('problem' in trial) return trial.problem;
  tried.add(key);
  const [oldest] = tried;
  if (tried.size > maxTried && oldest !== undefined) tried.delete(oldest);
  return undefined;
}

function call(program: string, args: readonly string[]): Promise<{ output: string } | { problem: string }> {
  return new Promise((resolve) => {
    closeBeforeStart();
    execFile(program, args, { timeout: trialMs, killSignal: 'SIGKILL', env: {} }, (error, output, errors) => {
      const [line = ''] = errors.trim().split('\n');
      resolve(
        error
          ? { problem: (line || error.message.split('\n')[0] || 'unknown reason').slice(0, 300) }
          : { output: output.trim() },
      );
    });
  });
}
