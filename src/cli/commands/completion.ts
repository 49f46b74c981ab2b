import { basename } from 'node:path';
import type { CommandContext } from '../command.ts';
import { commands } from '../commands.ts';
import { completionScript, isShell } from '../completion.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';

/** `oratorio completion [shell]` */
export async function run({ argument, env, output }: CommandContext): Promise<number> {
  const shell = argument ?? basename(env['SHELL'] ?? '');
  if (!isShell(shell)) throw usageError('Say which shell: bash, zsh or fish.', 'completion');
  output.raw(completionScript(shell, commands));
  return exitCodes.ok.code;
}
