import { disableChange, keptGatewayFiles } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { carryOut, showPlan } from '../server/carry-out.ts';
import { stackDirectory } from '../server/given.ts';

/** `oratorio server webhook disable`: removes the gateway only. */
export async function run(context: CommandContext): Promise<number> {
  const { output } = context;
  const directory = stackDirectory(context);
  const done = await carryOut(context, disableChange(directory), 'Take the gateway away?');
  if (done.state === 'dry') showPlan(context, done.plan);
  else if (output.json) output.document({ isEnabled: false, changed: done.changed, kept: keptGatewayFiles(directory) });
  else if (done.changed.length === 0) output.line('There was no gateway.');
  else
    output.line(
      'The gateway is removed. Secret and certificates stay. GitHub retries deliveries until you switch the webhook of the App off.',
    );
  return exitCodes.ok.code;
}
