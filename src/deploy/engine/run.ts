import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { spellingsOf } from '../../lib/index.ts';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { Lines, Tail } from './lines.ts';
import { outputRedactorFor } from './redactor.ts';
import type { RunOptions, RunResult } from './types.ts';

export interface ProgramCall extends RunOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Name in messages: `docker compose up`. */
  readonly name: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** It may ask at the terminal of its caller; then it stays in the caller's process group, and standard input is the caller's. */
  readonly hasTerminal?: boolean;
}

/** After being asked to end, until it is ended. */
const graceMs = 3_000;
/** Limits the wait for outputs that a descendant holds open after the program has ended, as a credential daemon does. */
const lingerMs = 1_000;

type Ending = { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null };

/**
 * Runs a program to its end, without a shell, in a process group of its own. How it ends is the answer; output is bounded and
 * without the secrets that were named.
 * @throws DeployError `engineMissing` when there is no such program, `engineFailed` when it cannot be started or took longer
 * than `timeoutMs`, `cancelled` when `signal` aborts. In the last two cases its whole group has ended.
 */
export async function runProgram(call: ProgramCall): Promise<RunResult> {
  if (call.signal?.aborted) throw cancelled(call);
  const child = start(call);
  const output = collect(child, call);
  let failure: DeployError | null = null;
  const stop = (reason: DeployError): void => {
    failure ??= reason;
    endGroup(child, call, 'SIGTERM');
    force ??= setTimeout(() => endGroup(child, call, 'SIGKILL'), graceMs);
  };
  let force: NodeJS.Timeout | undefined;
  const timer = setTimeout(() => stop(tooSlow(call)), call.timeoutMs);
  const onAbort = (): void => stop(cancelled(call));
  call.signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const ending = await ended(child, call);
    if (failure !== null) throw failure;
    return { exitCode: codeOf(ending), stdout: output.stdout(), stderr: output.stderr() };
  } finally {
    clearTimeout(timer);
    clearTimeout(force);
    call.signal?.removeEventListener('abort', onAbort);
    // Descendants that did not end with the program.
    if (failure !== null) endGroup(child, call, 'SIGKILL');
  }
}

function start({
  program,
  args,
  env,
  cwd,
  input,
  inputFile,
  outputFile,
  hasTerminal = false,
}: ProgramCall): ChildProcess {
  const standardInput = inputFile ?? (input !== undefined ? 'pipe' : hasTerminal ? 'inherit' : 'ignore');
  const child = spawn(program, args, {
    env,
    cwd,
    detached: !hasTerminal,
    stdio: [standardInput, outputFile ?? 'pipe', 'pipe'],
  });
  // A program that has heard enough closes its input; how it ends says whether that was right.
  child.stdin?.on('error', () => {}).end(input);
  return child;
}

function collect(child: ChildProcess, { secrets = [], onLine }: ProgramCall): { stdout(): string; stderr(): string } {
  const clean = outputRedactorFor(secrets);
  // The longest spelling is first.
  const holdBack = spellingsOf(secrets)[0]?.length ?? 0;
  const read = (stream: Readable | null): Tail => {
    const tail = new Tail(defaults.outputBytes);
    stream?.on('error', () => {}).on('data', (chunk: Buffer) => tail.add(chunk));
    if (onLine === undefined || stream === null) return tail;
    const lines = new Lines({ clean, holdBack, onLine });
    stream.on('data', (chunk: Buffer) => lines.add(chunk)).on('close', () => lines.end());
    return tail;
  };
  const [stdout, stderr] = [read(child.stdout), read(child.stderr)];
  return { stdout: () => clean(stdout.text()), stderr: () => clean(stderr.text()) };
}

/** Resolves when the program has ended and its output is read. */
function ended(child: ChildProcess, call: ProgramCall): Promise<Ending> {
  return new Promise((resolve, reject) => {
    let linger: NodeJS.Timeout | undefined;
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) reject(notStarted(error, call));
    });
    child.once('exit', () => {
      linger = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, lingerMs);
    });
    child.once('close', (exitCode, signal) => {
      clearTimeout(linger);
      resolve({ exitCode, signal });
    });
  });
}

/** As a shell says it. */
const signalNumbers: Readonly<Partial<Record<NodeJS.Signals, number>>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGKILL: 9,
  SIGTERM: 15,
};
const codeOf = ({ exitCode, signal }: Ending): number =>
  exitCode ?? 128 + (signal === null ? 0 : (signalNumbers[signal] ?? 0));

/** Signals the program with all its children; the number of a group is not reused as long as it has members. */
function endGroup(child: ChildProcess, { hasTerminal = false }: ProgramCall, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  if (hasTerminal) {
    child.kill(signal);
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const tooSlow = (call: ProgramCall): DeployError =>
  new DeployError(
    'engineFailed',
    `${call.name} took longer than ${Math.ceil(call.timeoutMs / 1_000)} s and was ended.`,
  );

const cancelled = (call: ProgramCall): DeployError => new DeployError('cancelled', `${call.name} was cancelled.`);

function notStarted(error: NodeJS.ErrnoException, call: ProgramCall): DeployError {
  const { program } = call;
  const cause = { cause: error };
  if (error.code === 'ENOENT') return new DeployError('engineMissing', `There is no program ${program}.`, null, cause);
  return new DeployError('engineFailed', `${program} cannot be started (${error.code ?? 'unknown'}).`, null, cause);
}
