import {
  directoryName,
  hasEarlierGitignore,
  InitError,
  type InitialisedWorkspace,
  initWorkspace,
  renewGitignore,
  workspaceTrust,
} from '../../config/index.ts';
import { runGit } from '../../git/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { offerLogin } from '../login/offer.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio init [dir]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, env, home } = context;
  const made = await initialise(workspacePath(context, context.argument), env);
  const { trust } = workspaceTrust({ home, workspace: made.workspacePath });
  if (output.json) output.document({ ...made, trust });
  const { green, dim } = output.colors;
  output.line(
    made.created
      ? `${green('✔')} ${made.workspacePath} is a workspace now`
      : `${made.workspacePath} is a workspace already`,
  );
  output.line(dim(`  settings  ${made.configFile}`));
  if (made.created && trust === 'restricted') output.line(dim(`  trust     ${newAndRestricted(made.workspacePath)}`));
  output.line(dim(`  next      oratorio up ${quoted(made.workspacePath)}`));
  await offerLogin(context, made.workspacePath);
  return exitCodes.ok.code;
}

/** Reason and next step for a workspace in a directory that already had files. */
export const newAndRestricted = (path: string): string =>
  `new and restricted, because the directory has other files; once you trust them: oratorio trust ${quoted(path)}`;

/** @throws CliError */
export async function initialise(path: string, env: CommandContext['env']): Promise<InitialisedWorkspace> {
  try {
    const made = initWorkspace(path, env);
    if (hasEarlierGitignore(made.workspacePath) && !(await isTracked(made.workspacePath, env))) {
      renewGitignore(made.workspacePath);
    }
    return made;
  } catch (error) {
    if (error instanceof InitError) throw new CliError('failure', error.message);
    throw error;
  }
}

/** Whether the user's repository holds the `.gitignore` of a workspace; true when git does not answer. */
async function isTracked(workspacePath: string, env: CommandContext['env']): Promise<boolean> {
  const args = ['ls-files', '--error-unmatch', '--', `${directoryName}/.gitignore`];
  const ended = await runGit({ cwd: workspacePath, workspacePath, env, args }).catch(() => undefined);
  return ended?.exitCode !== untracked;
}

/** Exit code of `git ls-files --error-unmatch` for a file outside of the index. */
const untracked = 1;
