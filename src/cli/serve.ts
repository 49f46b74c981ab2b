/** Shared by the commands that serve in the foreground. */
import { runAppServer, exitCodes as startupCodes } from '../appserver/index.ts';
import { extraToolNames } from '../config/index.ts';
import { visible } from '../lib/index.ts';
import { modelWords } from '../protocol/index.ts';
import { closeInherited } from '../supervise/index.ts';
import type { CommandContext } from './command.ts';
import { CliError, quoted } from './errors.ts';
import { type ExitName, exitCodes } from './exit-codes.ts';
import { canonical } from './workspace.ts';

type RunOptions = Parameters<typeof runAppServer>[0];
export type Serving = Parameters<NonNullable<RunOptions['onServing']>>[0];

/** Serves until it is stopped. @throws CliError when it cannot */
export async function serve(options: RunOptions): Promise<number> {
  closeInherited(options.env);
  const { exitCode, problem } = await runAppServer(options);
  if (problem === undefined) return exitCodes.ok.code;
  const exit = exitOf(exitCode);
  const hint = exit === 'workspaceLocked' ? heldHint(options.workspacePath) : null;
  throw new CliError(exit, `The agent server cannot run: ${problem}`, hint);
}

/** One workspace has one agent server: the Hub stops its own, a user stops the one started by hand. */
const heldHint = (workspace: string): string =>
  `End that one first: oratorio stop ${quoted(canonical(workspace))}, or Ctrl-C where it was started by hand.`;

/** Exit of this tool for an error of an agent server, whose process has other exit codes for the Hub. */
function exitOf(code: number): ExitName {
  switch (code) {
    case startupCodes.held:
      return 'workspaceLocked';
    case startupCodes.noWorkspace:
      return 'workspaceNotFound';
    case startupCodes.portTaken:
      return 'precondition';
    case startupCodes.bug:
      return 'failure';
    default:
      return 'startFailed';
  }
}

/** Prints the facts about a running server: addresses, model, tools, keys, and how to end it. */
export async function banner(
  { output }: CommandContext,
  serving: Serving,
  endpoints: readonly string[],
): Promise<void> {
  const { model, offered, warnings } = await serving.describe();
  const { bold, dim } = output.colors;
  output.line(`Serving ${bold(serving.workspacePath)}`);
  for (const endpoint of endpoints) output.line(`  ${endpoint}`);
  // The workspace may name the model, and a pipe into a pager ends at a terminal too.
  const hint = model.provider === 'demo' ? ` ${dim('no AI; for a real model: oratorio login')}` : '';
  output.line(`  model     ${visible(modelWords(model), { multiline: false })}${hint}`);
  for (const tools of offered) {
    const label = offered.length > 1 && tools.face === 'api' ? 'api tools' : 'tools    ';
    output.line(`  ${label} ${toolsLabel(tools, dim)}`);
  }
  if (serving.generatedKey) {
    output.line(`  key       ${dim('this user needs none; other users send the one in')} ${serving.generatedKey.file}`);
  }
  sayMoved(output, serving);
  for (const warning of warnings) output.warn(warning);
  sayGeneratedKey(output, serving);
  // Last: Ctrl-C makes a terminal drop pending output.
  output.line(dim('Ctrl-C stops it.'));
}

/** Prints a key when it is made, on a terminal only: logs and pipes have other readers. */
export function sayGeneratedKey(
  output: CommandContext['output'],
  { generatedKey }: Pick<Serving, 'generatedKey'>,
): void {
  if (generatedKey?.isNew && process.stderr.isTTY)
    output.note(`New API key, saved in ${generatedKey.file}: ${generatedKey.key}`);
}

type Offered = Awaited<ReturnType<Serving['describe']>>['offered'][number];

/** Counts the tools of a list, or the nine that each face offers; the extra ones follow by name. */
function toolsLabel({ face, names, isAll, isListed, mcpServers }: Offered, dim: (text: string) => string): string {
  const which = isAll ? 'all tools enabled' : `tools: ${names.join(', ') || 'none'}`;
  const later = mcpServers === 0 ? '' : `, and those of ${mcpServers} MCP server${mcpServers === 1 ? '' : 's'}`;
  const extra = face === 'api' ? extraToolNames : names.filter((name) => isExtra.has(name));
  const counted = isListed ? names : names.filter((name) => !isExtra.has(name));
  const more = face === 'api' ? 'more when EnabledTools or Api.EnabledTools names them' : 'more';
  const rest = isListed || extra.length === 0 ? '' : `, and ${extra.length} ${more}: ${extra.join(', ')}`;
  return `${counted.length} ${dim(`(${which}${later})${rest}`)}`;
}

const isExtra: ReadonlySet<string> = new Set(extraToolNames);

/** Reports that a service listens on another port than configured. */
export function sayMoved(output: CommandContext['output'], { moved }: Pick<Serving, 'moved'>): void {
  for (const { service, wanted, bound } of moved) {
    output.warn(`Port ${wanted.port} was not free: the ${service} listens on ${bound.port} instead.`);
  }
}
