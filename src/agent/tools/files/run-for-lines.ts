import { LineSplitter } from '../../../lib/index.ts';
import { RunningProgram } from '../../../supervise/index.ts';

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
  /** Passed to `LineSplitter`. */
  readonly endsAtNul?: boolean;
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
 * Runs a program that has no children of its own, until it ends, `onLine` returns false, the time is over or `signal` aborts. The
 * program has ended when this settles.
 *
 * @throws StartError; the reason of `signal`; an error of `onLine`
 */
export async function runForLines(program: string, args: readonly string[], options: RunOptions): Promise<LinesEnd> {
  const { env, cwd, stdin, signal, timeoutMs, maxErrorChars } = options;
  signal.throwIfAborted();
  const reading = new Reading(options, () => running.stop());
  let errorText = '';
  const running = new RunningProgram({
    ...{ program, args, env, cwd, stdin, signal, timeoutMs },
    group: 'callers',
    stdout: (chunk) => reading.add(chunk),
    stderr: (chunk) => {
      if (errorText.length < maxErrorChars) errorText += chunk.toString('utf8');
    },
  });
  const { cause, exitCode } = await running.ended.catch((error: Error) => {
    throw new StartError(error.message, { cause: error });
  });
  signal.throwIfAborted();
  reading.throwIfFailed();
  return { end: ends[cause], exitCode, errorText: errorText.slice(0, maxErrorChars) };
}

const ends = { exited: 'complete', stopped: 'stopped', aborted: 'stopped', timedOut: 'timedOut' } as const;

/** Passes lines to `onLine` until it returns false or throws; then stops the program. */
class Reading {
  readonly #lines: LineSplitter;
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;

  constructor({ maxLineBytes, endsAtNul, onLine }: RunOptions, stop: () => void) {
    this.#lines = new LineSplitter({
      maxBytes: maxLineBytes,
      longer: 'cut',
      ...(endsAtNul && { endsAtNul }),
      onLine: (line, isCut) => {
        if (this.#isOver) return;
        try {
          this.#isOver = !onLine(line.toString('utf8'), isCut);
        } catch (error) {
          this.#failure = { error };
          this.#isOver = true;
        }
        if (this.#isOver) stop();
      },
    });
  }

  add(chunk: Buffer): void {
    if (!this.#isOver) this.#lines.add(chunk);
  }

  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
