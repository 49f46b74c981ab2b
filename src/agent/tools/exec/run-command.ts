import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../../../protocol/index.ts';
import { killGroupVerified, ownIdentity, readIdentity, type SweepReport } from '../../../supervise/index.ts';
import { readText } from './read-text.ts';

/** A program to run to its end. */
export interface CommandRun {
  /** The program, and what it is called with. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The whole environment, with the marker in it. */
  readonly env: Readonly<Record<string, string>>;
  /** Unlike that of any other run. */
  readonly marker: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called with the text of both outputs, as it arrives. */
  readonly onText: (text: string) => void;
  /** Time after its exit in which its descendants may still write: a background process may hold the pipes for ever. */
  readonly drainMs?: number;
}

/** End of a command. Its descendants have ended too, except for those that `sweep` reports. */
export interface CommandEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly cause: 'exited' | 'timedOut' | 'aborted';
  /** Report on the descendants it had left behind. */
  readonly sweep: SweepReport;
}

/** Between a polite end and a forced one. */
const politeMs = 2_000;
const usualDrainMs = 100;
/** Short, because uncollected zombies, as in many containers, look like active members of a group. */
const lastMomentMs = 20;
const pollMs = 2;

/**
 * Runs a command in a session and process group of its own, with empty standard input. It is over when its first process
 * exits, is out of time or is aborted, even if a descendant still holds its pipes; then its descendants are ended: its
 * group, and processes that left the group but carry the marker (Linux; a process that did both, leave and clear its environment, escapes).
 * @throws the system's error when it cannot be started
 */
export async function runCommand(run: CommandRun): Promise<CommandEnd> {
  const child = await start(run);
  const command = new RunningCommand(child);
  const texts = [readText(child.stdout, run.onText), readText(child.stderr, run.onText)];
  const cause = await command.untilOver(run.timeoutMs, run.signal);
  if (cause !== 'exited') await command.end();
  await command.drained(Promise.all(texts.map(({ ended }) => ended)), run.drainMs ?? usualDrainMs);
  const sweep = await killGroupVerified(command.identity, run.marker);
  await command.killGroup();
  for (const text of texts) text.stop();
  return { ...command.result, cause, sweep };
}

async function start({ argv, cwd, env }: CommandRun): Promise<ChildProcess & { pid: number }> {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) throw await new Promise((resolve) => child.once('error', resolve));
  child.on('error', () => {});
  return child as ChildProcess & { pid: number };
}

/** The first process of a command, and the group that it leads. */
class RunningCommand {
  readonly identity: ProcessIdentity;
  readonly #child: ChildProcess;
  readonly #pid: number;
  readonly #exited: Promise<void>;
  #groupOutlivedIt = false;

  constructor(child: ChildProcess & { pid: number }) {
    this.#child = child;
    this.#pid = child.pid;
    const identity = readIdentity(child.pid);
    // A process that has exited already has no identity any more, but its descendants may be there.
    this.identity = typeof identity === 'string' ? { ...ownIdentity(), pid: child.pid, startedTicks: '' } : identity;
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => {
        // A number that is the number of a group is given to no other process: who is in it now is ours.
        this.#groupOutlivedIt = this.#signalGroup(0);
        resolve();
      });
    });
  }

  get result(): Pick<CommandEnd, 'exitCode' | 'signal'> {
    return { exitCode: this.#child.exitCode, signal: this.#child.signalCode };
  }

  /** Waits for the exit, the deadline or the signal, whichever is first. */
  async untilOver(timeoutMs: number, signal: AbortSignal): Promise<CommandEnd['cause']> {
    const stopWaiting = new AbortController();
    const aborted = new Promise<'aborted'>((resolve) => {
      if (signal.aborted) resolve('aborted');
      signal.addEventListener('abort', () => resolve('aborted'), { once: true, signal: stopWaiting.signal });
    });
    const late = sleep(timeoutMs, 'timedOut' as const, { signal: stopWaiting.signal });
    late.catch(() => {});
    const cause = await Promise.race([this.#exited.then(() => 'exited' as const), aborted, late]);
    stopWaiting.abort();
    return cause;
  }

  /** Ends the group, politely first. Gives up on a process that even SIGKILL does not end. */
  async end(): Promise<void> {
    this.#signalGroup('SIGTERM');
    // A stopped process would never see it.
    this.#signalGroup('SIGCONT');
    if (await within(this.#exited, politeMs)) return;
    this.#signalGroup('SIGKILL');
    await within(this.#exited, defaults.supervise.killVerifyMs);
  }

  /** Waits until its output has ended, at most `ms`; and then a moment for those who ended with it to be gone. */
  async drained(outputEnded: Promise<unknown>, ms: number): Promise<void> {
    if (await within(outputEnded, ms)) await this.#groupGone();
  }

  /** Kills what is left of the group, whether it carries the marker or not. */
  async killGroup(): Promise<void> {
    if (this.#groupOutlivedIt && this.#signalGroup('SIGKILL')) await this.#groupGone();
  }

  async #groupGone(): Promise<void> {
    const deadline = performance.now() + lastMomentMs;
    while (this.#groupOutlivedIt && this.#signalGroup(0) && performance.now() < deadline) await sleep(pollMs);
  }

  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-this.#pid, signal);
    } catch {
      // No member is left, or none that we may signal.
      return false;
    }
  }
}

/** Whether `event` comes within `ms`. Leaves no timer behind. */
async function within(event: Promise<unknown>, ms: number): Promise<boolean> {
  const stopWaiting = new AbortController();
  const late = sleep(ms, false, { signal: stopWaiting.signal }).catch(() => false);
  const came = await Promise.race([event.then(() => true), late]);
  stopWaiting.abort();
  return came;
}
