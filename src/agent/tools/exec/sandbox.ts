import { execFile } from 'node:child_process';
import { findProgram } from '../../../lib/index.ts';
import { sandboxExec, seatbeltProfile } from './seatbelt.ts';
import { doors, floor, isolation, type SandboxNetwork, type SandboxPlaces } from './walls.ts';

/** `Tools.Shell.Sandbox`. */
export type SandboxMode = 'off' | 'auto' | 'required';

/** Whether commands run in a sandbox of the operating system. */
export interface SandboxStatus {
  readonly mode: SandboxMode;
  /** Whether they do. */
  readonly available: boolean;
  /** Why they do not; how they do. A sentence without a full stop. */
  readonly reason: string;
}

type Environment = Readonly<Record<string, string | undefined>>;
type Bubblewrap = { readonly program: string; readonly version: string } | { readonly problem: string };

const trialMs = 10_000;

/** Everything readable, nothing writable but the workspace and an empty `/tmp`; processes of its own, which end with the command. */
const wallsOf = (network: SandboxNetwork): readonly string[] => [...floor, ...isolation(network)];

/** Results of the trials of bubblewrap, by `PATH` and network. Each is made once. */
const found = new Map<string, Promise<Bubblewrap>>();

/** Whether commands would be run in a sandbox with `mode`, and why. Tries it out the first time, if `mode` wants it. */
export async function sandboxStatus(
  mode: SandboxMode,
  environment: Environment = process.env,
  network: SandboxNetwork = 'deny',
): Promise<SandboxStatus> {
  if (mode === 'off') return { mode, available: false, reason: 'Tools.Shell.Sandbox is off' };
  if (isMac) {
    const problem = await findSeatbelt();
    return { mode, available: problem === undefined, reason: problem ?? sandboxExec };
  }
  const bubblewrap = await findBubblewrap(environment, network);
  return 'problem' in bubblewrap
    ? { mode, available: false, reason: bubblewrap.problem }
    : { mode, available: true, reason: `${bubblewrap.version}, ${bubblewrap.program}` };
}

/** Places of a command with a sandbox of its own. */
export interface SandboxedCommand extends SandboxPlaces {
  readonly cwd: string;
}

/**
 * The words to put before a command so that it runs in the sandbox; none when `mode` does without.
 * @returns undefined when the sandbox is required and not there
 */
export async function sandboxPrefix(
  mode: SandboxMode,
  command: SandboxedCommand,
  environment: Environment,
): Promise<readonly string[] | undefined> {
  if (mode === 'off') return [];
  if (isMac) {
    if ((await findSeatbelt()) === undefined) return [sandboxExec, '-p', seatbeltProfile(command)];
    return mode === 'auto' ? [] : undefined;
  }
  const bubblewrap = await findBubblewrap(environment, command.network);
  if ('problem' in bubblewrap) return mode === 'auto' ? [] : undefined;
  return [bubblewrap.program, ...wallsOf(command.network), ...(await doors(command)), '--chdir', command.cwd, '--'];
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
  const trial = await call(program, [...wallsOf(network), '--', '/bin/sh', '-c', 'exit 0']);
  if ('problem' in trial) return { problem: `bubblewrap cannot make a sandbox here: ${trial.problem}` };
  return { program, version: version.output };
}

function call(program: string, args: readonly string[]): Promise<{ output: string } | { problem: string }> {
  return new Promise((resolve) => {
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
