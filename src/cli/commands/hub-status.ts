import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { findHub } from '../find-hub.ts';
import { statusLines } from '../render.ts';

/** `oratorio hub status`: never starts one. */
export async function run({ home, output, signal }: CommandContext): Promise<number> {
  const found = await findHub(home, signal);
  if (found.kind === 'none') {
    throw new CliError('hubUnavailable', found.message, 'To start one: oratorio up', 'hubUnavailable');
  }
  if (output.json) output.document(found.status);
  else for (const line of statusLines(found.status, output.colors)) output.line(line);
  return exitCodes.ok.code;
}
