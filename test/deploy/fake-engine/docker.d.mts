import type { Readable, Writable } from 'node:stream';

/** One command of a program. */
export interface EngineCall {
  /** Directory of the engine's files. */
  readonly directory: string;
  readonly program: string;
  /** Process id of the program. */
  readonly pid: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Standard input of the program; read at most once. */
  readonly input: () => Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Aborted when the program has ended or was killed. */
  readonly hungUp: AbortSignal;
}

/** Carries a command out; never rejects. @returns the exit code of the program */
export function answerCall(call: EngineCall): Promise<number>;
