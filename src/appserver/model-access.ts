import { ModelError, type ModelProvider, modelSettingsOf, modelSource } from '../agent/index.ts';
import { type Config, homeDirectory } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import { ownAgent } from '../protocol/index.ts';
import type { AssemblyOptions } from './assembly-options.ts';
import { StartupError } from './startup-error.ts';

type Source = () => Promise<ModelProvider>;

/** Model of a workspace. */
export interface ModelAccess {
  readonly settings: ReturnType<typeof modelSettingsOf>;
  readonly provider: Source;
  close(): Promise<void>;
}

/**
 * Opens no connection: the first request does.
 *
 * @param protect takes a secret out of everything that is written from now on
 */
export function openModel(
  { config, upstream, layers, provider, logger }: AssemblyOptions,
  env: AssemblyOptions['env'],
  protect: (secret: string) => void,
): ModelAccess {
  const settings = modelSettingsOf(config, upstream, layers);
  const source =
    provider ??
    modelSource(settings, {
      home: homeDirectory(env),
      onKey: protect,
      onProblem: (reason) => logger.warn('the refreshed model catalogue is not used', { reason }),
    });
  let asked: Promise<ModelProvider> | undefined;
  return {
    settings,
    provider() {
      asked = source();
      return asked;
    },
    async close() {
      (await asked?.catch(() => undefined))?.close();
    },
  };
}

/**
 * Model of our own agent in a workspace whose turns another agent does. The demo stands in only where it was chosen: such a
 * workspace often has no model, and a review must not be made up.
 */
export function ownModel(
  { Provider }: Pick<Config, 'Provider'>,
  { main, providers, model }: ReturnType<typeof modelSettingsOf>,
  source: Source,
): Source {
  const { kind } = providers[model.split('/', 1)[0] ?? ''] ?? main;
  return kind === 'demo' && Provider !== 'demo' ? hasNone : source;
}

async function hasNone(): Promise<never> {
  throw new ModelError(
    'upstreamUnauthorized',
    `The agent ${ownAgent} has no model in this workspace: set EndPoint, Model and ApiKey.`,
    { isRetryable: false },
  );
}

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
