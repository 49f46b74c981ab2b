import { type ProgramEnd, runProgram as run } from '../../supervise/index.ts';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import { PrintedLines, Tail } from './lines.ts';
import { outputRedactorFor, type Redactor } from './redactor.ts';
import type { RunOptions, RunResult } from './types.ts';

export interface ProgramCall extends RunOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Name in messages: `docker compose up`. */
  readonly name: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The program may ask at the caller's terminal; then it has the caller's process group and standard input. */
  readonly hasTerminal?: boolean;
}

/** Time between SIGTERM and SIGKILL. */
const graceMs = 3_000;
/** Limits the wait for outputs that a descendant holds open after the program has ended, as a credential daemon does. */
const lingerMs = 1_000;

/**
 * Runs a program to its end, without a shell, in a process group of its own. Its end is the result, also for a failure; the output
 * is bounded and without the secrets that were named.
 *
 * @throws DeployError `engineMissing` for a missing program, `engineFailed` for one that cannot be started or took longer than
 * `timeoutMs`, `cancelled` when `signal` aborts. In the last two cases its whole group has ended.
 */
export async function runProgram(call: ProgramCall): Promise<RunResult> {
  const { program, args, env, cwd, input, inputFile, outputFile, hasTerminal = false, timeoutMs, signal } = call;
  const clean = outputRedactorFor(call.secrets ?? []);
  const [stdout, stderr] = [collect(call, clean), collect(call, clean)];
  const end = await run({
    ...{ program, args, env, cwd, timeoutMs, signal, graceMs, lingerMs },
    stdin: inputFile ?? input ?? (hasTerminal ? 'inherit' : undefined),
    stdout: outputFile ?? stdout.add,
    stderr: stderr.add,
    group: hasTerminal ? 'callers' : 'own',
  }).catch((error: NodeJS.ErrnoException) => {
    throw notStarted(error, call);
  });
  for (const output of [stdout, stderr]) output.end();
  if (end.cause === 'aborted') throw cancelled(call);
  if (end.cause === 'timedOut') throw tooSlow(call);
  return { exitCode: codeOf(end), stdout: stdout.text(), stderr: stderr.text() };
}

interface CollectedOutput {
  readonly add: (chunk: Buffer) => void;
  readonly end: () => void;
  readonly text: () => string;
}

/** Collects one output: its end for the result, and its lines for `onLine`. */
function collect({ secrets = [], onLine }: ProgramCall, clean: Redactor): CollectedOutput {
  const tail = new Tail(defaults.outputBytes);
  const lines = onLine && new PrintedLines({ secrets, clean, onLine });
  return {
    add: (chunk) => {
      tail.add(chunk);
      lines?.add(chunk);
    },
    end: () => lines?.end(),
    text: () => clean(tail.text()),
  };
}

/** Numbers of signals, for the exit codes that a shell reports. */
const signalNumbers: Readonly<Partial<Record<NodeJS.Signals, number>>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGKILL: 9,
  SIGTERM: 15,
};
const codeOf = ({ exitCode, signal }: ProgramEnd): number =>
  exitCode ?? 128 + (signal === null ? 0 : (signalNumbers[signal] ?? 0));

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
