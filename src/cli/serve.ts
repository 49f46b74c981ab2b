/** What the commands that serve in the foreground share. */
import { runAppServer, exitCodes as startupCodes } from '../appserver/index.ts';
import type { CommandContext } from './command.ts';
import { CliError, usageError } from './errors.ts';
import { type ExitName, exitCodes } from './exit-codes.ts';

type RunOptions = Parameters<typeof runAppServer>[0];
export type Serving = Parameters<NonNullable<RunOptions['onServing']>>[0];

/** Serves until it is told to stop. @throws CliError when it cannot */
export async function serve(options: RunOptions): Promise<number> {
  const { exitCode, problem } = await runAppServer(options);
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

/** What a person sees when it serves: addresses, what answers, and how to end it. */
export async function banner(
  { output }: CommandContext,
  serving: Serving,
  endpoints: readonly string[],
): Promise<void> {
  const { provider, model, tools } = await serving.describe();
  const { bold, dim } = output.colors;
  output.line(`Serving ${bold(serving.workspacePath)}`);
  for (const endpoint of endpoints) output.line(`  ${endpoint}`);
  output.line(`  model     ${model} ${dim(`(${providerLabel(provider)})`)}`);
  const all = tools.length === allTools ? 'all tools enabled' : `tools: ${tools.join(', ') || 'none'}`;
  output.line(`  tools     ${tools.length} ${dim(`(${all})`)}`);
  output.line(dim('Ctrl-C stops it.'));
}

const allTools = 9;

const providerLabel = (provider: string): string =>
  provider === 'demo'
    ? 'demo provider: offline, no AI; set ApiKey or EndPoint for a real one'
    : `provider: ${provider}`;

export function portOf(text: string, command: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw usageError(`--port must be a number from 0 to 65535, not ${text}.`, command);
}
