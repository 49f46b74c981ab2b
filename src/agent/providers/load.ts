import { ModelError, type ModelProvider } from '../model.ts';
import { apiKeyOf } from './api-key.ts';
import { builtInCatalogue, type KnownFacts } from './catalogue/index.ts';
import type { ModelSettings, ProviderSettings } from './settings.ts';

const usualEndPoint = 'https://api.openai.com/v1';
/** Model of a compatible upstream for which none is set. */
const usualModel = 'gpt-4o-mini';

/** Code of the providers. */
const parts = {
  demo: () => import('./demo.ts'),
  chat: () => import('./openai.ts'),
  sdk: () => import('./sdk/index.ts'),
};

type SdkKind = 'openai' | 'anthropic' | 'google';

async function wireOf(kind: SdkKind) {
  const { anthropicWire, googleWire, responsesWire, SdkProvider } = await parts.sdk();
  const wires = { openai: responsesWire, anthropic: anthropicWire, google: googleWire };
  return { wire: wires[kind], SdkProvider };
}

const usesChat = ({ kind }: ProviderSettings, wire: ModelSettings['wire']): boolean =>
  kind === 'openai-compatible' || (kind === 'openai' && wire === 'chat');

/** Functions that load the code of the configured providers, with the libraries of their services. They read no key. */
export function preloadProviders({ main, providers, wire }: ModelSettings): (() => Promise<unknown>)[] {
  const services = [main, ...Object.values(providers)].map((provider) => {
    const { kind } = provider;
    if (kind === 'demo') return parts.demo;
    if (usesChat(provider, wire) || kind === 'openai-compatible') return parts.chat;
    return async () => (await wireOf(kind)).wire.load();
  });
  return [builtInCatalogue, ...services];
}

export interface LoadOptions {
  /** Configured name of the provider. */
  readonly name: string;
  readonly provider: ProviderSettings;
  /** Model of requests that name none; empty: the usual one of the provider. */
  readonly model: string;
  readonly settings: ModelSettings;
  readonly factsOf: (model: string) => KnownFacts;
  /** Called with a key that a command printed. */
  readonly onKey: ((key: string) => void) | undefined;
}

/**
 * Loads the code of one provider and gets its key.
 * @throws ModelError for an end point that is not a URL, or a command that gives no key
 */
export async function loadProvider(options: LoadOptions): Promise<ModelProvider> {
  const { name, provider, model, settings, factsOf, onKey } = options;
  const { kind, endPoint, headers, proxy, keySource } = provider;
  const { wire, idleMs, streamUpstream, thoughtTags } = settings;
  if (kind === 'demo') {
    const { DemoProvider } = await parts.demo();
    return new DemoProvider();
  }
  const apiKey = await apiKeyOf(provider);
  if (provider.apiKey === '' && apiKey !== '') onKey?.(apiKey);
  if (kind === 'openai-compatible' || usesChat(provider, wire)) {
    if (endPoint === '' && kind === 'openai-compatible' && apiKey === '') {
      throw new ModelError('upstreamUnreachable', `The provider ${name} has no EndPoint: set one.`, {
        isRetryable: false,
      });
    }
    const { OpenAiProvider } = await parts.chat();
    return new OpenAiProvider({
      name,
      endPoint: endPoint || usualEndPoint,
      apiKey,
      headers,
      model: model || usualModel,
      streamUpstream,
      idleMs,
      ...{ proxy, keySource, thoughtTags },
    });
  }
  const { wire: service, SdkProvider } = await wireOf(kind);
  return new SdkProvider({
    ...{ wire: service, name, endPoint, apiKey, headers, model, idleMs, factsOf },
    ...{ proxy, keySource, thoughtTags },
  });
}
