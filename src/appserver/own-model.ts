import { ModelError, type ModelProvider, type modelSettingsOf } from '../agent/index.ts';
import type { Config } from '../config/index.ts';
import { ownAgent } from '../protocol/index.ts';

type Source = () => Promise<ModelProvider>;

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
