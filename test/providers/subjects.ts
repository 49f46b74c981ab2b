/** Every dialect with the provider of ours that speaks it. */
import * as v from 'valibot';
import { type ModelProvider, modelSettingsOf, modelSource } from '../../src/agent/index.ts';
import { Config } from '../../src/config/index.ts';
import type { Dialect, Fake } from './fake.ts';
import { anthropicFake } from './fakes/anthropic.ts';
import { googleFake } from './fakes/google.ts';
import { responsesFake } from './fakes/responses.ts';

export interface Subject {
  readonly name: string;
  readonly dialect: () => Dialect;
  /** Settings besides end point and key. */
  readonly settings: Readonly<Record<string, unknown>>;
}

export const subjects: readonly Subject[] = [
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

/** Our provider for a running fake, by its settings. */
export function providerFor(
  fake: Pick<Fake, 'endPoint' | 'apiKey'>,
  settings: Readonly<Record<string, unknown>>,
): Promise<ModelProvider> {
  const config = v.parse(Config, { EndPoint: fake.endPoint, ApiKey: fake.apiKey, UpstreamIdleMs: 60_000, ...settings });
  return modelSource(modelSettingsOf(config))();
}
