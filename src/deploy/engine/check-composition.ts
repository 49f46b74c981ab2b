import { defaults } from '../defaults.ts';
import type { StackLayout } from '../layout.ts';
import { must, type OperationOptions, quietly } from './operation.ts';
import type { Engine } from './types.ts';

/**
 * Whether the compositions that are there, merged and with `.env` put in, are valid. Nothing of them is printed.
 * @throws DeployError compositionInvalid with what the composition tool said
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
