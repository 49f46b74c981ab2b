import { type ChildProcess, spawn } from 'node:child_process';
import { pipeline, Readable } from 'node:stream';
import { closeBeforeStart } from './inherited.ts';

/** Takes a chunk of an output. The pipe can be paused. */
type OnOutput = (chunk: Buffer, pipe: Readable) => void;

/** A program to run to its end, without a shell. */
export interface ProgramRun {
  readonly program: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string | undefined;
  /** Standard input: content, a stream, a file descriptor, or `inherit` for that of this process. Default: empty. */
  readonly stdin?: string | Uint8Array | Readable | number | 'inherit' | undefined;
  /** Standard input is empty, and ends when this process does. */
  readonly seesOurEnd?: boolean | undefined;
  /** Descriptor to pass as descriptor 3. Default: none. */
  readonly line?: number | undefined;
  /** Called with the program's standard output, or the descriptor of a file. Default: discarded. */
  readonly stdout?: OnOutput | number | undefined;
  /** Called with the program's standard error, or the descriptor of a file. Default: discarded. */
  readonly stderr?: OnOutput | number | undefined;
  /**
   * Default `own`: the program leads a process group, and stopping it ends the group. `callers`: it can use the terminal, and only the
   * program itself is ended.
   */
  readonly group?: 'own' | 'callers';
  readonly timeoutMs?: number | undefined;
  /** Stops the program. With a signal that has been aborted already, the program is not started. */
  readonly signal?: AbortSignal | undefined;
  /** Time between SIGTERM and SIGKILL. Default: SIGKILL at once. */
  readonly graceMs?: number;
  /** Time after the exit for which a descendant may hold the outputs open. Without a limit the descendant is waited for. */
  readonly lingerMs?: number;
  /** Time after SIGKILL after which a program that does not end is given up, as one in uninterruptible sleep. Default: never. */
  readonly giveUpMs?: number;
}

/** Reason for the end of a program: its own exit, or the first that stopped it. */
export type ProgramEndCause = 'exited' | 'timedOut' | 'aborted' | 'stopped';

/** End of a program. Both `exitCode` and `signal` are null for one that was never started or was given up. */
export interface ProgramEnd {
  readonly cause: ProgramEndCause;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Runs a program to its end.
 *
 * @throws the system's error (`code` is `ENOENT`, `EACCES`, …) for a program that cannot be started
 */
export function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  return new RunningProgram(run).ended;
}

/** A program that was started. Its constructor starts it. */
export class RunningProgram {
  /** Undefined for a program that could not be started, or was aborted before. */
  readonly pid: number | undefined;
  /** Resolves when the program has ended and its outputs are read. Rejects with the system's error when it cannot be started. */
  readonly ended: Promise<ProgramEnd>;
  readonly #child: ChildProcess | undefined;
  readonly #run: ProgramRun;
  readonly #timers = new Set<NodeJS.Timeout>();
  #cause: ProgramEndCause = 'exited';
  #hasGroupOutlived = false;
  #giveUp: (() => void) | undefined;

  constructor(run: ProgramRun) {
    this.#run = run;
    if (run.signal?.aborted) {
      this.ended = Promise.resolve({ cause: 'aborted', exitCode: null, signal: null });
      return;
    }
    const { program, args, env, cwd, stdin, seesOurEnd, stdout, stderr, line, group = 'own' } = run;
    const isContent = typeof stdin === 'string' || stdin instanceof Uint8Array;
    closeBeforeStart();
    const child = spawn(program, args, {
      env,
      cwd,
      detached: group === 'own',
      windowsHide: true,
      stdio: [
        isContent || stdin instanceof Readable || seesOurEnd ? 'pipe' : (stdin ?? 'ignore'),
        typeof stdout === 'function' ? 'pipe' : (stdout ?? 'ignore'),
        typeof stderr === 'function' ? 'pipe' : (stderr ?? 'ignore'),
        ...(line === undefined ? [] : [line]),
      ],
    });
    this.#child = child;
    this.pid = child.pid;
    // A program that needs no more input closes it; its exit code says whether that is a failure.
    if (isContent) child.stdin?.on('error', () => {}).end(stdin);
    else if (stdin instanceof Readable && child.stdin) pipeline(stdin, child.stdin, () => {});
    if (typeof stdout === 'function') read(child.stdout, stdout);
    if (typeof stderr === 'function') read(child.stderr, stderr);
    this.ended = this.#untilEnded(child);
  }

  /** True while members of the group live on after the program itself. */
  get hasDescendants(): boolean {
    return this.#hasGroupOutlived && this.#signal(0);
  }

  /** Ends the program and its group. The first reason counts. */
  stop(cause: Exclude<ProgramEndCause, 'exited'> = 'stopped'): void {
    if (this.#cause !== 'exited') return;
    this.#cause = cause;
    const { graceMs = 0, giveUpMs } = this.#run;
    const kill = (): void => {
      this.#signal('SIGKILL');
      if (giveUpMs !== undefined) this.#after(giveUpMs, () => this.#giveUp?.());
    };
    if (graceMs === 0) {
      kill();
      return;
    }
    this.#signal('SIGTERM');
    // A stopped process would never receive it.
    this.#signal('SIGCONT');
    this.#after(graceMs, kill);
  }

  /** Lets the program run on: this process no longer waits for it, and the program sees our end. `ended` stays pending. */
  release(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const stream of this.#child?.stdio ?? []) stream?.destroy();
    this.#child?.removeAllListeners();
    this.#child?.unref();
  }

  /** Ends the remaining members of the group with SIGKILL. Does nothing when none is left. */
  killDescendants(): void {
    if (this.#hasGroupOutlived) this.#signal('SIGKILL');
  }

  async #untilEnded(child: ChildProcess): Promise<ProgramEnd> {
    const { timeoutMs, signal, lingerMs } = this.#run;
    const onAbort = (): void => this.stop('aborted');
    signal?.addEventListener('abort', onAbort, { once: true });
    if (timeoutMs !== undefined) this.#after(timeoutMs, () => this.stop('timedOut'));
    try {
      await new Promise<void>((resolve, reject) => {
        this.#giveUp = () => {
          for (const stream of child.stdio) stream?.destroy();
          child.unref();
          resolve();
        };
        child.on('error', (error) => {
          if (child.pid === undefined) reject(error);
        });
        child.once('exit', () => {
          // The number of a group is given to no other process while the group has members: who is in it now is ours.
          this.#hasGroupOutlived = this.#run.group !== 'callers' && this.#signal(0);
          if (lingerMs !== undefined) this.#after(lingerMs, () => afterReading(() => destroyOutputs(child)));
        });
        child.once('close', () => resolve());
      });
      if (this.#cause !== 'exited') this.killDescendants();
      return { cause: this.#cause, exitCode: child.exitCode, signal: child.signalCode };
    } finally {
      for (const timer of this.#timers) clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #after(ms: number, work: () => void): void {
    this.#timers.add(setTimeout(work, ms));
  }

  /** @returns false when there is no process to signal, or none that this process may signal */
  #signal(signal: NodeJS.Signals | 0): boolean {
    const child = this.#child;
    if (child?.pid === undefined) return false;
    const isReaped = child.exitCode !== null || child.signalCode !== null;
    if (this.#run.group === 'callers') return !isReaped && child.kill(signal);
    if (isReaped && signal !== 0 && !this.#hasGroupOutlived) return false;
    try {
      return process.kill(-child.pid, signal);
    } catch {
      return false;
    }
  }
}

function read(pipe: Readable | null, onOutput: OnOutput): void {
  // A broken pipe ends like any other: the exit code reports the program's end.
  pipe?.on('error', () => {}).on('data', (chunk: Buffer) => onOutput(chunk, pipe));
}

/** Lets the event loop read the content of the pipes: the timer of a delayed process fires before that. */
function afterReading(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

function destroyOutputs({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}
