import { engineOnce, ingressStatus } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { pairs } from '../render.ts';
import { stackDirectory } from '../server/given.ts';

/** `oratorio server webhook status`: whether GitHub can deliver, and where. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const status = await ingressStatus(stackDirectory(context), await engineOnce(context)(), context);
  if (output.json) {
    output.document(status);
    return exitCodes.ok.code;
  }
  const rows: [string, string][] = [
    ['enabled', status.isEnabled ? 'yes' : 'no'],
    ...(status.isEnabled
      ? [['address', status.url ?? 'unknown: the Caddyfile was changed by hand'] as [string, string]]
      : []),
    ['secret', status.hasSecret ? 'configured' : 'missing'],
    ['gateway', status.gateway ?? 'none'],
  ];
  for (const line of pairs(rows, output.colors)) output.line(line);
  return exitCodes.ok.code;
}
