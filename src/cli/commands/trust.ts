import {
  ConfigError,
  revokeTrust,
  TrustError,
  trustConsequence,
  trustedWorkspaces,
  trustQuestion,
  workspaceTrust,
} from '../../config/index.ts';
import { count, visible } from '../../lib/index.ts';
import type { CommandContext } from '../command.ts';
import { canConfirm, confirm } from '../confirm.ts';
import { CliError, invalidConfig, quoted, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Output } from '../output.ts';
import { columns } from '../render.ts';
import { canonical, workspacePath } from '../workspace.ts';

/** `oratorio trust [dir]`: shows the sensitive settings of a workspace, and records whether the user agrees. */
export async function run(context: CommandContext): Promise<number> {
  const { argument, options } = context;
  const chosen = ['yes', 'revoke', 'list'].filter((name) => options[name] === true);
  if (chosen.length > 1) throw usageError(`--${chosen[0]} and --${chosen[1]} exclude each other.`, 'trust');
  if (options['list'] === true) return list(context);
  const workspace = canonical(workspacePath(context, argument));
  try {
    return options['revoke'] === true ? revoke(context, workspace) : await trust(context, workspace);
  } catch (error) {
    if (error instanceof TrustError) throw new CliError('failure', error.message, null, 'trustRefused');
    if (error instanceof ConfigError) throw invalidConfig(error);
    throw error;
  }
}

function list({ output, home, argument }: CommandContext): number {
  if (argument !== undefined) throw usageError('--list shows every trusted workspace and takes no directory.', 'trust');
  const { workspaces, problem } = trustedWorkspaces(home);
  if (problem !== undefined) output.warn(problem);
  if (output.json) output.document(workspaces);
  else if (workspaces.length === 0) output.line('You trust no workspace.');
  else {
    const rows = workspaces.map(({ path, trust, trustedAt }) => [
      trust === 'trusted' ? trust : 'changed since',
      trustedAt,
      visible(path, { multiline: false }),
    ]);
    for (const line of columns(['STATE', 'TRUSTED AT', 'WORKSPACE'], rows, output)) output.line(line);
  }
  return exitCodes.ok.code;
}

function revoke({ output, home }: CommandContext, workspace: string): number {
  const wasTrusted = revokeTrust({ home, workspace });
  const name = visible(workspace, { multiline: false });
  report({ output, home }, workspace);
  output.line(wasTrusted ? `${name} is restricted now. ${restartHint(workspace)}` : `${name} was not trusted.`);
  return exitCodes.ok.code;
}

async function trust(context: CommandContext, workspace: string): Promise<number> {
  const { output, home, options, signal, env } = context;
  const name = visible(workspace, { multiline: false });
  if (workspaceTrust({ home, workspace }).trust === 'trusted') {
    report(context, workspace);
    output.line(`${name} is trusted already.`);
    return exitCodes.ok.code;
  }
  const { lines, changed, files, agree } = trustQuestion({ home, workspace, env });
  // With --json standard output is the document alone; the question is on standard error, so its subject is there, too.
  const show = (line: string) => (output.json ? output.note(line) : output.line(line));
  if (lines.length === 0) show(`${name} asks for nothing that needs your trust.`);
  else {
    show(`${output.colors.bold(name)} asks for:`);
    for (const line of lines) show(line);
    show(trustConsequence);
  }
  if (options['yes'] !== true && !(await agrees(output, name, workspace, { lines, changed }, signal))) {
    throw new CliError('failure', `${name} stays restricted.`, null, 'notTrusted');
  }
  agree();
  report(context, workspace);
  output.line(
    `${output.colors.green('✔')} ${name} is trusted until these settings${files > 0 ? ' or files' : ''} change. ${restartHint(workspace)}`,
  );
  return exitCodes.ok.code;
}

/** @param shown lines and changes that were shown; a long list is out of sight when the question is asked */
async function agrees(
  output: Output,
  name: string,
  workspace: string,
  { lines, changed }: { readonly lines: readonly string[]; readonly changed: readonly string[] },
  signal: AbortSignal,
): Promise<boolean> {
  const [first] = lines;
  const length = first === undefined ? '' : `${count(lines.length, 'line')} above, beginning with: ${first.trim()}\n`;
  const since = changed.length === 0 ? '' : `Changed since you agreed: ${changed.join(', ')}\n`;
  if (canConfirm()) return confirm(output, `${length}${since}Trust ${name}?`, signal);
  throw new CliError(
    'failure',
    'The question of trust needs a terminal.',
    `Review the settings above, then: oratorio trust ${quoted(workspace)} --yes`,
    'notTrusted',
  );
}

const restartHint = (workspace: string): string =>
  `A running agent server takes this at its next start: oratorio restart ${quoted(workspace)}`;

function report({ output, home }: Pick<CommandContext, 'output' | 'home'>, workspace: string): void {
  if (output.json) output.document({ workspacePath: workspace, ...workspaceTrust({ home, workspace }) });
}
