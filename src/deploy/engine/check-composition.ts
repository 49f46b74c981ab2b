import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import { must, type OperationOptions, quietly } from './operation.ts';
import type { Engine } from './types.ts';

/**
 * Checks the existing compositions, merged and with `.env` put in. Prints nothing of them.
 * @throws DeployError compositionInvalid with the message of the composition tool
 */
export async function checkComposition(
  engine: Engine,
  stack: StackLayout,
  options: OperationOptions = {},
): Promise<void> {
  const settings = { ...quietly(options), timeoutMs: defaults.timeouts.checkMs };
  await must(
    'Checking the composition',
    engine.runCompose(stack, ['config', '--quiet'], settings),
    'compositionInvalid',
  );
}
