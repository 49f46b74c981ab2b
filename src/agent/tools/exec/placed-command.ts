import { findProgram } from '../../../lib/index.ts';
import type { CommandPlace } from './command-place.ts';
import { innerVariables } from './inner-variables.ts';
import type { CommandRun } from './run-command.ts';

/**
 * Words and environment of a command. Both outputs go into one pipe, so that their order is preserved. The arguments keep the
 * command out of any quoting.
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

/** Longest text of the programs before a command. */
export const maxWrapperText = 10_000;
const sandboxWords = /^(?:bwrap|nsenter|setpriv): .+$/m;

/** The sandbox failed to start a command, which did not run. */
export class SandboxStartError extends Error {
  override readonly name = 'SandboxStartError';

  constructor(problem: string) {
    super(
      `the command did not run: ${problem}. This is the sandbox, not the command; try again, or call oratorio doctor.`,
    );
  }
}

/** The sandbox's words on a failed start. Undefined: the command ran. @param wrapper text of the programs before it */
export const startProblem = (wrapper: string, exitCode: number | null): string | undefined =>
  exitCode === 0 ? undefined : sandboxWords.exec(wrapper)?.[0];
