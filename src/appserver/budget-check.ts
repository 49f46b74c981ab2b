import type { ModelProvider } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import { StartupError } from './startup-error.ts';

/**
 * A budget needs the price of the model: without it nothing could be stopped in time.
 *
 * @throws StartupError (config) for a budget that cannot be checked
 */
export async function checkBudget(
  { Budget, Model }: Pick<Config, 'Budget' | 'Model'>,
  provider: () => Promise<ModelProvider>,
): Promise<void> {
  const [name] = Object.entries(Budget).find(([, usd]) => usd > 0) ?? [];
  if (name === undefined) return;
  const models = await provider().catch((error: unknown) => {
    throw new StartupError('config', `Budget.${name} cannot be checked: ${messageOf(error)}`, { cause: error });
  });
  if (!models.facts || models.facts().price) return;
  const model = Model || models.model;
  throw new StartupError(
    'config',
    `Budget.${name} needs the price of ${model}, which is unknown: set Models."${model}".Price, or remove Budget.`,
  );
}
