import { findProgram } from '../../../lib/index.ts';
import type { CommandPlace } from './command-place.ts';
import { innerVariables } from './inner-variables.ts';
import type { CommandRun } from './run-command.ts';

/**
 * Arguments and environment of a command. Both outputs go into one pipe, which preserves their order. The command is passed as an
 * argument, so it needs no quoting.
 */
export function inPlace(
  { words, directory, isSandboxed }: CommandPlace,
  command: string,
  variables: Readonly<Record<string, string>>,
  path: string | undefined,
): Pick<CommandRun, 'argv' | 'env'> {
  const program = findProgram('bash', path) ?? '/bin/sh';
  const { env, script } = isSandboxed ? innerVariables(variables) : { env: variables, script: '' };
  const start = directory === undefined ? '' : 'cd "$2" || exit; ';
  const line = `${start}${script}exec "$0" -c "$1" 2>&1`;
  return {
    argv: [...words, '/bin/sh', '-c', line, program, command, ...(directory === undefined ? [] : [directory])],
    env,
  };
}

/** Longest output of the programs that start a command, in characters. */
export const maxWrapperText = 10_000;
const sandboxWords = /^(?:bwrap|nsenter|setpriv): .+$/m;

/** The sandbox failed to start a command, which did not run. */
export class SandboxStartError extends Error {
  override readonly name = 'SandboxStartError';

  constructor(problem: string) {
    super(
      `the command did not run: ${problem}. The sandbox failed, not the command: try again, or run oratorio doctor.`,
    );
  }
}

/** Error of the sandbox about a failed start; undefined: the command ran. @param wrapper output of the programs that start it */
export const startProblem = (wrapper: string, exitCode: number | null): string | undefined =>
  exitCode === 0 ? undefined : sandboxWords.exec(wrapper)?.[0];
