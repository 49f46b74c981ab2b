import { type ChildProcess, spawn } from 'node:child_process';
import { LineSplitter } from './line-splitter.ts';

/** The program could not be started. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export interface RunOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Descriptor of a file; absent: nothing. */
  readonly stdin?: number;
  /** A longer line is cut. */
  readonly maxLineBytes: number;
  readonly maxErrorChars: number;
  /** Called with every line of standard output; false ends the program. */
  readonly onLine: (line: string, isCut: boolean) => boolean;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export interface LinesEnd {
  readonly end: 'complete' | 'stopped' | 'timedOut';
  /** null: a signal ended it. */
  readonly exitCode: number | null;
  readonly errorText: string;
}

/**
 * Runs a program that has no children of its own, until it ends, `onLine` says false, the time is over or `signal` aborts. It
 * is gone when this settles.
 *
 * @throws StartError; the reason of `signal`; what `onLine` throws
 */
export async function runForLines(program: string, args: readonly string[], options: RunOptions): Promise<LinesEnd> {
  const { env, cwd, stdin, signal, timeoutMs } = options;
  signal.throwIfAborted();
  const child = spawn(program, args, {
    stdio: [stdin ?? 'ignore', 'pipe', 'pipe'],
    env,
    ...(cwd !== undefined && { cwd }),
    windowsHide: true,
  });
  let end: LinesEnd['end'] = 'complete';
  const stopAs = (reason: LinesEnd['end']) => {
    if (end === 'complete') end = reason;
    child.kill('SIGKILL');
  };
  const onAbort = () => stopAs('stopped');
  const timer = setTimeout(stopAs, timeoutMs, 'timedOut');
  signal.addEventListener('abort', onAbort, { once: true });
  const reading = readLines(child, options, () => stopAs('stopped'));
  const error = readError(child, options.maxErrorChars);
  try {
    const exitCode = await exitOf(child);
    signal.throwIfAborted();
    reading.throwIfFailed();
    return { end, exitCode, errorText: error.text() };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

function readLines(child: ChildProcess, { maxLineBytes, onLine }: RunOptions, stop: () => void) {
  const splitter = new LineSplitter(maxLineBytes);
  let isOver = false;
  let failure: { readonly error: unknown } | undefined;
  const finish = () => {
    isOver = true;
    stop();
  };
  child.stdout?.on('data', (chunk: Buffer) => {
    if (isOver) return;
    try {
      splitter.add(chunk, (line, isCut) => {
        if (!isOver && !onLine(line, isCut)) finish();
      });
    } catch (error) {
      failure = { error };
      finish();
    }
  });
  return {
    throwIfFailed: () => {
      if (failure) throw failure.error;
    },
  };
}

function readError(child: ChildProcess, maxChars: number) {
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    if (text.length < maxChars) text += chunk.toString('utf8');
  });
  return { text: () => text.slice(0, maxChars) };
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(new StartError(cause.message, { cause })));
    child.once('close', resolve);
  });
}
