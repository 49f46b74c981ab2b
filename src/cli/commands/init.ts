import { InitError, initWorkspace, workspaceTrust } from '../../config/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { offerLogin } from '../login/offer.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio init [dir]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, env, home } = context;
  const made = initialise(workspacePath(context, context.argument), env);
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

/** Reason and next step for a workspace that was made where files lay already. */
export const newAndRestricted = (path: string): string =>
  `new and restricted, because the directory has other files; once you trust them: oratorio trust ${quoted(path)}`;

/** @throws CliError */
export function initialise(path: string, env: CommandContext['env']): ReturnType<typeof initWorkspace> {
  try {
    return initWorkspace(path, env);
  } catch (error) {
    if (error instanceof InitError) throw new CliError('failure', error.message);
    throw error;
  }
}
