import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../../../protocol/index.ts';
import {
  killGroupVerified,
  ownIdentity,
  type ProgramEnd,
  RunningProgram,
  readIdentity,
  type SweepReport,
} from '../../../supervise/index.ts';
import { PacedText } from './paced-text.ts';

/** A program to run to its end. */
export interface CommandRun {
  /** The program and its arguments. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The whole environment, with the marker in it. */
  readonly env: Readonly<Record<string, string>>;
  /** Marker that is unique to this run. */
  readonly marker: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Content of standard input. Default: empty. */
  readonly stdin?: string | undefined;
  /** Called with the text of both outputs, as it arrives. */
  readonly onText: (text: string) => void;
  /** Called with the text of standard error instead. */
  readonly onErrorText?: ((text: string) => void) | undefined;
  /** Time after its exit in which its descendants may still write: a background process may hold the pipes for ever. */
  readonly drainMs?: number;
}

/** End of a command. Its descendants have ended too, except for those that `sweep` reports. */
export interface CommandEnd extends ProgramEnd {
  /** Report on the descendants it had left behind. */
  readonly sweep: SweepReport;
}

/** Time between SIGTERM and SIGKILL. */
const politeMs = 2_000;
const usualDrainMs = 100;
/** Short, because uncollected zombies, as in many containers, look like active members of a group. */
const lastMomentMs = 20;
const pollMs = 2;

/**
 * Runs a command in a session and process group of its own. It is over when its first process
 * exits, is out of time or is aborted, even if a descendant still holds its pipes; then its descendants are ended: its
 * group, and processes that left the group but carry the marker (Linux; a process that did both, leave and clear its environment, escapes).
 *
 * @throws the system's error when it cannot be started
 */
export async function runCommand(run: CommandRun): Promise<CommandEnd> {
  const { cwd, env, stdin, timeoutMs, signal, onText, onErrorText = onText, drainMs = usualDrainMs } = run;
  const [program = '', ...args] = run.argv;
  const [stdout, stderr] = [new PacedText(onText), new PacedText(onErrorText)];
  const command = new RunningProgram({
    ...{ program, args, cwd, env, stdin, timeoutMs, signal },
    ...{ graceMs: politeMs, giveUpMs: defaults.supervise.killVerifyMs, lingerMs: drainMs },
    stdout: (chunk, pipe) => stdout.add(chunk, pipe),
    stderr: (chunk, pipe) => stderr.add(chunk, pipe),
  });
  const identity = identityOf(command.pid);
  const end = await command.ended;
  for (const text of [stdout, stderr]) text.end();
  if (identity === undefined) return { ...end, sweep: { ended: 0, remaining: [], uncertain: false } };
  await withoutDescendants(command);
  const sweep = await killGroupVerified(identity, run.marker);
  command.killDescendants();
  await withoutDescendants(command);
  return { ...end, sweep };
}

/** Identity of a process that was just started; undefined when none was. */
function identityOf(pid: number | undefined): ProcessIdentity | undefined {
  if (pid === undefined) return undefined;
  const identity = readIdentity(pid);
  // A process that has exited already has no identity any more, but its descendants may be there.
  return typeof identity === 'string' ? { ...ownIdentity(), pid, startedTicks: '' } : identity;
}

/** Waits a moment for processes that end together with the command. */
async function withoutDescendants(command: RunningProgram): Promise<void> {
  const deadline = performance.now() + lastMomentMs;
  while (command.hasDescendants && performance.now() < deadline) await sleep(pollMs);
}
