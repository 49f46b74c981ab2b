import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { ModelFacts, ModelInfo, ModelRequest } from '../../model.ts';
import type { EventRules } from './event-filter.ts';

/** Wire of one service: its library and the options that the library does not derive by itself. */
export interface Wire {
  /** Base URL when the settings name none. */
  readonly usualEndPoint: string;
  readonly usualModel: string;
  /** Preparation of its event streams for the library; absent: none. */
  readonly events?: EventRules;
  /** Path of the list of models. */
  readonly listPath: string;
  /** Headers that carry the key. */
  keyHeaders(apiKey: string): Readonly<Record<string, string>>;
  /** Loads the library on first use. @param fetch reaches the configured upstream only */
  load(options: {
    readonly baseUrl: string;
    readonly fetch: typeof fetch;
  }): Promise<(model: string) => LanguageModelV4>;
  /** Options of one request besides prompt and tools. */
  options(request: ModelRequest, facts: WireFacts): Partial<LanguageModelV4CallOptions>;
  /** @param body parsed JSON @throws v.ValiError for another shape */
  modelsIn(body: unknown): readonly ModelInfo[];
}

/** Facts of a model that a wire needs. */
export interface WireFacts extends Pick<ModelFacts, 'maxOutputTokens' | 'reasoning'> {
  readonly model: string;
}

/** The libraries insist on a key; the real one travels in the headers of our connection. */
export const keyPlaceholder = 'unused';
