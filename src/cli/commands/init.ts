import { InitError, initWorkspace } from '../../config/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, quoted } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { offerLogin } from '../login/offer.ts';
import { workspacePath } from '../workspace.ts';

/** `oratorio init [dir]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, env } = context;
  const made = initialise(workspacePath(context, context.argument), env);
  if (output.json) output.document(made);
  const { green, dim } = output.colors;
  output.line(
    made.created
      ? `${green('✔')} ${made.workspacePath} is a workspace now`
      : `${made.workspacePath} is a workspace already`,
  );
  output.line(dim(`  settings  ${made.configFile}`));
  output.line(dim(`  next      oratorio up ${quoted(made.workspacePath)}`));
  await offerLogin(context, made.workspacePath);
  return exitCodes.ok.code;
}

/** @throws CliError */
export function initialise(path: string, env: CommandContext['env']): ReturnType<typeof initWorkspace> {
  try {
    return initWorkspace(path, env);
  } catch (error) {
    if (error instanceof InitError) throw new CliError('failure', error.message);
    throw error;
  }
}
