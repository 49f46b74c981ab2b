import { restartChange } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { carryOut, showPlan } from '../server/carry-out.ts';
import { stackDirectory } from '../server/given.ts';
import { servicesOf } from '../server/services.ts';

/** `oratorio server restart`: recreates containers, so that changed settings apply. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const done = await carryOut(context, restartChange(stackDirectory(context), servicesOf(context)), null);
  if (done.state === 'dry') showPlan(context, done.plan);
  else if (output.json) output.document({ state: 'healthy', changed: done.changed });
  else output.line('Everything is healthy.');
  return exitCodes.ok.code;
}
