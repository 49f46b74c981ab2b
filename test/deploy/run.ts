/** One program, from start to end, with all that it printed. */
import { execFile } from 'node:child_process';

export interface Ran {
  /** Null when a signal ended it, or when it could not be started. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunSettings {
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

/** Runs a program without a shell. Never rejects: the result holds exit code and signal. At most 16 MiB of each stream are returned. */
export function run(program: string, args: readonly string[], settings: RunSettings): Promise<Ran> {
  return new Promise((resolve) => {
    const options = {
      encoding: 'utf8',
      timeout: settings.timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 16 * 1024 * 1024,
      ...(settings.cwd === undefined ? {} : { cwd: settings.cwd }),
      ...(settings.env === undefined ? {} : { env: settings.env }),
    } as const;
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      resolve({ exitCode, stdout, stderr: error !== null && exitCode === null ? `${stderr}${error.message}` : stderr });
    });
    // A program that ended before it read all of its input reports this by its exit code.
    child.stdin?.on('error', () => {});
    child.stdin?.end(settings.input ?? '');
  });
}
