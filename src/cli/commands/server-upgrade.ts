import { checkUpgrade, engineOnce, type UpgradeRequest, upgradeChange } from '../../deploy/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { carryOut, sessionOf, showPlan } from '../server/carry-out.ts';
import { given, stackDirectory } from '../server/given.ts';
import { showChange } from '../server/progress.ts';

/** `oratorio server upgrade`: other images, and back when they do not become healthy. */
export async function run(context: CommandContext): Promise<number> {
  const { output, options } = context;
  const wish = wishOf(context);
  if (options['check'] === true) return check(context, wish);
  const done = await carryOut(context, upgradeChange(wish), 'Upgrade like this?');
  if (done.state === 'dry') showPlan(context, done.plan);
  else if (output.json) output.document({ state: 'healthy', changed: done.changed });
  else output.line('The new version runs and is healthy.');
  return exitCodes.ok.code;
}

async function check(context: CommandContext, wish: UpgradeRequest): Promise<number> {
  const { output } = context;
  const shown = showChange(output);
  const session = sessionOf(context, shown.observe);
  const found = await checkUpgrade(wish, { engine: engineOnce(session), session, isDry: false }).finally(shown.stop);
  if (output.json) output.document(found);
  else if (!found.isNewer) output.line('There is nothing newer.');
  else for (const { what, current, available } of found.images) output.line(`${what}: ${current} → ${available}`);
  return exitCodes.ok.code;
}

function wishOf(context: CommandContext): UpgradeRequest {
  const checkout = given(context, 'build');
  return {
    directory: stackDirectory(context),
    images: { stack: given(context, 'image') ?? null, gateway: given(context, 'gateway-image') ?? null },
    build:
      checkout === undefined
        ? null
        : { context: context.absolute(checkout), base: given(context, 'base-image') ?? null },
  };
}
