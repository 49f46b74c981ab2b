import { isAbsolute } from 'node:path';
import type { ToolContext } from '../../tool.ts';
import { errorCode } from '../text.ts';
import { findDirectory, findPlace } from './command-place.ts';
import { type ExecSettings, runShell } from './exec.ts';
import { SandboxStartError } from './placed-command.ts';
import type { CommandEnd } from './run-command.ts';

/** A command that is not run. The message is a sentence. */
export class DelegateCommandError extends Error {
  override readonly name = 'DelegateCommandError';
}

export interface DelegateCommand {
  readonly workspacePath: string;
  readonly threadId: string;
  /** Result of `locate`, which must still be valid. */
  readonly directory: string;
  /** Command line for a shell. */
  readonly command: string;
  /** Variables of tool chains. Default: the variables of the settings. */
  readonly environment?: ToolContext['environment'];
  readonly signal: AbortSignal;
  /** Called with the text of both outputs, as it arrives. */
  readonly onText: (text: string) => void;
}

/** Shell commands of an external agent, run where our own commands run. All methods throw DelegateCommandError. */
export interface DelegateCommands {
  /** Real directory in the workspace that commands may run in. */
  readonly locate: (workspacePath: string, given: string) => Promise<string>;
  /** Resolves when nothing of the command is left. */
  readonly run: (command: DelegateCommand) => Promise<CommandEnd>;
}

export function createDelegateCommands(settings: ExecSettings): DelegateCommands {
  async function locate(workspacePath: string, given: string): Promise<string> {
    if (!isAbsolute(given)) throw new DelegateCommandError(`The directory ${given} is refused: give an absolute path.`);
    const found = await findDirectory(given, settings, { workspacePath });
    if (typeof found === 'string') return found;
    throw new DelegateCommandError(found.text);
  }

  async function run({ directory, command, onText, ...context }: DelegateCommand) {
    const { workspacePath } = context;
    if ((await locate(workspacePath, directory)) !== directory) {
      throw new DelegateCommandError(`The directory ${directory} leads elsewhere now.`);
    }
    const place = await findPlace(directory, settings, context);
    if (typeof place === 'string') throw new DelegateCommandError(place);
    const { maxTimeoutMs: timeoutMs } = settings;
    try {
      return await runShell({ command, cwd: directory, place, timeoutMs, onText }, settings, context);
    } catch (error) {
      if (error instanceof SandboxStartError)
        throw new DelegateCommandError(`Exec: ${error.message}`, { cause: error });
      const code = errorCode(error);
      if (code === undefined) throw error;
      throw new DelegateCommandError(`The command could not be started (${code}).`, { cause: error });
    } finally {
      await place.leave();
    }
  }

  return { locate, run };
}
