/** Every dialect with the provider of ours that speaks it. */
import * as v from 'valibot';
import { type ModelRouter, modelSettingsOf, modelSource } from '../../src/agent/index.ts';
import { Config } from '../../src/config/index.ts';
import type { Dialect, Fake } from './fake.ts';
import { anthropicFake } from './fakes/anthropic.ts';
import { type ChatRules, chatFake, chatServices } from './fakes/chat.ts';
import { googleFake } from './fakes/google.ts';
import { responsesFake } from './fakes/responses.ts';

export interface Subject {
  readonly name: string;
  readonly dialect: () => Dialect;
  /** Settings besides end point and key. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Deviations of a service that speaks chat completions. */
  readonly rules?: ChatRules;
}

const native: readonly Subject[] = [
  { name: 'OpenAI Responses', dialect: responsesFake, settings: { Provider: 'openai', Model: 'gpt-6-sol' } },
  {
    name: 'OpenAI Responses without reasoning',
    dialect: responsesFake,
    settings: { Provider: 'openai', Model: 'gpt-4.1' },
  },
  {
    name: 'Anthropic, adaptive thinking',
    dialect: anthropicFake,
    settings: { Provider: 'anthropic', Model: 'claude-sonnet-5-5' },
  },
  {
    name: 'Anthropic, thinking budget',
    dialect: anthropicFake,
    settings: { Provider: 'anthropic', Model: 'claude-opus-4-5', ReasoningEffort: 'medium' },
  },
  { name: 'Gemini 3', dialect: googleFake, settings: { Provider: 'google', Model: 'gemini-3.8-flash' } },
  { name: 'Gemini 2.5', dialect: googleFake, settings: { Provider: 'google', Model: 'gemini-2.5-flash' } },
];

/** Services that speak chat completions; OpenAI's own new models refuse tools there. */
const compatible = chatServices.map(
  (rules: ChatRules): Subject => ({
    name: `chat completions: ${rules.name}`,
    dialect: () => chatFake(rules),
    settings: { Provider: 'openai-compatible', Model: rules.models[0] ?? '' },
    rules,
  }),
);

export const subjects: readonly Subject[] = [...native, ...compatible];

/** Our provider for a running fake, by its settings. */
export function providerFor(
  fake: Pick<Fake, 'endPoint' | 'apiKey'>,
  settings: Readonly<Record<string, unknown>>,
): Promise<ModelRouter> {
  if (settings['Model'] === 'my-deployment') return azure(fake);
  const config = v.parse(Config, { EndPoint: fake.endPoint, ApiKey: fake.apiKey, UpstreamIdleMs: 60_000, ...settings });
  return modelSource(modelSettingsOf(config))();
}

/** Azure's key has a header of its own, derived from its host names; a stand-in needs `Headers`. */
function azure({ endPoint, apiKey }: Pick<Fake, 'endPoint' | 'apiKey'>): Promise<ModelRouter> {
  const Providers = { azure: { EndPoint: endPoint, Headers: { 'api-key': apiKey } } };
  const config = v.parse(Config, { Provider: 'demo', Model: 'azure/my-deployment', Providers });
  return modelSource(modelSettingsOf(config))();
}
