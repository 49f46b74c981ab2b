import { realpath } from 'node:fs/promises';
import { delegateCommands, sandboxStateOf, type ToolSettings, trySandbox } from '../../agent/index.ts';
import { loadConfig, secretsIn } from '../../config/index.ts';
import { messageOf } from '../../lib/index.ts';
import { closeInherited, runProgram, toolChainEnvironment } from '../../supervise/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { inLine } from '../render.ts';

/** Files of an attempt, which its check judges. */
export interface CheckedFiles {
  readonly directory: string;
  readonly threadId: string;
}

/** Whether the check has succeeded in an attempt. @throws CheckError when it cannot be started */
export type RunCheck = (files: CheckedFiles, signal: AbortSignal) => Promise<boolean>;

/** The check could not be started: its directory is gone, for example. */
export class CheckError extends Error {
  override readonly name = 'CheckError';
}

/** Time for a check to end after the race is interrupted. */
const graceMs = 2_000;
/** The user waits for the check, and can interrupt it. */
const dayMs = 86_400_000;

/**
 * The check of a race. It runs where commands of agents run, in the sandbox of its attempt: agents wrote the files that it executes.
 *
 * @param workspacePath workspace of the race
 * @throws CliError sandboxUnavailable when there is no sandbox, and the user has not agreed to run without one
 */
export async function checkOf(context: CommandContext, workspacePath: string, command: string): Promise<RunCheck> {
  const { env, home, options } = context;
  if (options['outside'] === true) return outsideCheck(command, env);
  closeInherited(env);
  const { config } = loadConfig({ home, workspace: workspacePath, env });
  const { Tools } = config;
  const settings: ToolSettings = {
    tools: { ...Tools, Shell: { ...Tools.Shell, MaxTimeoutMs: dayMs } },
    blockedPaths: config.Permissions.BlockedPaths,
    passEnvironment: config.Supervision.PassEnvironment,
    secrets: secretsIn(config),
    environment: env,
    home,
  };
  const { Sandbox: mode } = Tools.Shell;
  const { state, reason } = sandboxStateOf(await trySandbox(settings, workspacePath));
  // With "off", the user has agreed for all commands; with --yes, for the commands of this race.
  if (state === 'failed' || (state === 'off' && mode !== 'off' && options['yes'] !== true)) {
    throw new CliError(
      'failure',
      `The check of the race cannot run in a sandbox: ${inLine(reason)}.`,
      'See: oratorio doctor. To run the check outside of the sandbox, with your rights, add --outside',
      'sandboxUnavailable',
    );
  }
  const commands = delegateCommands(settings);
  const environment = toolChainEnvironment(env);
  return async ({ directory, threadId }, signal) => {
    try {
      const path = await realpath(directory);
      const { exitCode } = await commands.run({
        ...{ workspacePath: path, threadId, directory: path, command, environment, signal },
        onText: () => undefined,
      });
      signal.throwIfAborted();
      return exitCode === 0;
    } catch (error) {
      signal.throwIfAborted();
      throw notStarted(directory, error);
    }
  };
}

const notStarted = (directory: string, error: unknown): CheckError =>
  new CheckError(`The check cannot be started in ${directory}: ${messageOf(error)}`, { cause: error });

const outsideCheck =
  (command: string, env: CommandContext['env']): RunCheck =>
  async ({ directory }, signal) => {
    try {
      const { cause, exitCode } = await runProgram({
        ...{ program: 'sh', args: ['-c', command], cwd: directory, env, signal, graceMs },
      });
      if (cause === 'aborted') signal.throwIfAborted();
      return exitCode === 0;
    } catch (error) {
      signal.throwIfAborted();
      throw notStarted(directory, error);
    }
  };
