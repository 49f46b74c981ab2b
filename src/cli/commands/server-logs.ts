import { defaults, engineOnce, followLogs, readStack } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { given, stackDirectory } from '../server/given.ts';
import { servicesOf } from '../server/services.ts';

/** `oratorio server logs`: shows the logs of a stack's containers, without its secrets. */
export async function run(context: CommandContext): Promise<number> {
  const { output, options, signal } = context;
  const { layout } = readStack(stackDirectory(context));
  const tail = given(context, 'tail') ?? String(defaults.logLines);
  if (!/^\d{1,7}$/.test(tail)) throw usageError(`--tail must be a number of lines, not ${tail}.`, 'server logs');
  const since = given(context, 'since');
  await followLogs(
    await engineOnce(context)(),
    layout,
    {
      follow: options['follow'] === true,
      tail: Number(tail),
      timestamps: options['timestamps'] === true,
      services: servicesOf(context),
      ...(since !== undefined && { since }),
    },
    (line, service) => {
      if (output.json) output.jsonLine({ service, line });
      else output.line(`${output.colors.dim(`${service} |`)} ${line}`);
    },
    signal,
  );
  return exitCodes.ok.code;
}
