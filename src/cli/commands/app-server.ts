import { runAppServer, exitCodes as startupCodes } from '../../appserver/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitName, exitCodes } from '../exit-codes.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio app-server`: serves until it is told to stop. */
export async function run(context: CommandContext): Promise<number> {
  const { options, output, env } = context;
  const { exitCode, problem } = await runAppServer({
    workspacePath: workspacePath(context, options['workspace']),
    listen: typeof options['port'] === 'string' ? { host: '127.0.0.1', port: portOf(options['port']) } : undefined,
    env,
    onServing: ({ workspacePath, baseUrl }) => output.line(`Serving ${workspacePath} at ${baseUrl}`),
  });
  if (problem === undefined) return exitCodes.ok.code;
  throw new CliError(exitOf(exitCode), `The agent server cannot run: ${problem}`);
}

/** The process of an agent server has exit codes of its own, for the Hub; people get those of this tool. */
function exitOf(code: number): ExitName {
  switch (code) {
    case startupCodes.held:
      return 'workspaceLocked';
    case startupCodes.noWorkspace:
      return 'workspaceNotFound';
    case startupCodes.bug:
      return 'failure';
    default:
      return 'startFailed';
  }
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw usageError(`--port must be a number from 0 to 65535, not ${text}.`, 'app-server');
}
