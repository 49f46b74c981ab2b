/** Command lines that run in the process of the test: for the effects of a command that do not depend on its process. */
import { Writable } from 'node:stream';
import { runCommandLine } from '../../src/cli/run.ts';
import { programEnvironment } from '../programs.ts';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Both outputs, in the order in which they were written. */
  readonly text: string;
}

export interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Runs `oratorio ARGV` in the directory `home`, which is the home of its user too. */
export const runInProcess = (home: string, ...argv: string[]): Promise<Ran> =>
  runAt({ cwd: home, env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home, NO_COLOR: '1' } }, ...argv);

/** Runs `oratorio ARGV`. Its output is not a terminal. */
export async function runAt({ cwd, env }: Place, ...argv: string[]): Promise<Ran> {
  const shown = { stdout: '', stderr: '', text: '' };
  const collect = (stream: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk: Buffer, _, done) {
        shown[stream] += String(chunk);
        shown.text += String(chunk);
        done();
      },
    });
  const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
  const code = await runCommandLine(argv, {
    stdout: collect('stdout'),
    stderr: collect('stderr'),
    cwd,
    env,
    interruption,
  });
  return { code, ...shown };
}
