import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { ModelFacts, ModelInfo, ModelRequest } from '../../model.ts';
import type { EventRules } from './event-filter.ts';

/** Wire of one service: its library and the options that the library does not derive automatically. */
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
  /** Loads the library on first use. */
  load(): Promise<Library>;
  /** Options of one request besides prompt and tools. */
  options(request: ModelRequest, facts: WireFacts): Partial<LanguageModelV4CallOptions>;
  /** @param body parsed JSON @throws v.ValiError for another shape */
  modelsIn(body: unknown): readonly ModelInfo[];
}

/** Makes a model of the library for one request. @param fetch reaches the configured upstream only */
export type Library = (model: string, fetch: typeof globalThis.fetch) => LanguageModelV4;

/** Facts of a model that a wire needs. */
export interface WireFacts extends Pick<ModelFacts, 'maxOutputTokens' | 'reasoning'> {
  readonly model: string;
}

/**
 * Address and key that the libraries insist on. Of the address only path and query reach the upstream; the real key travels in the
 * headers of our connection.
 */
export const libraryAccess = { baseURL: 'https://upstream.invalid', apiKey: 'unused' } as const;
