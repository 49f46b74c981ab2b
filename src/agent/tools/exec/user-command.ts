import { findProgram } from '../../../lib/index.ts';
import { commandEnvironment, type EnvironmentSettings, newMarker } from './environment.ts';
import { runCommand } from './run-command.ts';

/** A command that the user has configured. It runs outside of the sandbox. */
export interface UserCommand {
  /** Command line for bash, or for sh where bash is missing. */
  readonly command: string;
  readonly cwd: string;
  /** Content of standard input. */
  readonly stdin: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface UserCommandEnd {
  readonly cause: 'exited' | 'timedOut' | 'aborted' | 'stopped';
  /** Null: ended by a signal. */
  readonly exitCode: number | null;
  /** Beginning of its standard output. */
  readonly stdout: string;
  readonly stderr: string;
}

/** @throws the system's error when the shell cannot be started */
export type RunUserCommand = (command: UserCommand) => Promise<UserCommandEnd>;

/** Most characters of each output. */
const maxOutput = 10_000;

/** Runs the user's commands in the environment of commands: without keys, with a marker that finds their remaining processes. */
export const userCommands =
  (settings: EnvironmentSettings): RunUserCommand =>
  async ({ command, ...run }) => {
    const marker = newMarker(settings.environment);
    const said = { stdout: '', stderr: '' };
    const keep = (name: keyof typeof said) => (text: string) => {
      said[name] += text.slice(0, maxOutput - said[name].length);
    };
    const { cause, exitCode } = await runCommand({
      ...run,
      marker,
      argv: [findProgram('bash', settings.environment['PATH']) ?? '/bin/sh', '-c', command],
      // A bash that reads from a socket takes itself for one below rsh, and reads ~/.bashrc, unless another shell started it.
      env: { ...commandEnvironment(settings, marker), SHLVL: '1' },
      onText: keep('stdout'),
      onErrorText: keep('stderr'),
    });
    return { cause, exitCode, ...said };
  };
