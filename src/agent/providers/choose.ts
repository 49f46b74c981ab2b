import type { ModelProvider } from '../model.ts';

/** Settings that select the provider. A sidecar's address and key take the place of `EndPoint` and `ApiKey`. */
export interface ProviderSettings {
  readonly endPoint: string;
  readonly apiKey: string;
  readonly model: string;
  /** `StreamUpstream`; default true. */
  readonly streamUpstream?: boolean;
  /** `UpstreamIdleMs`; default two minutes. */
  readonly idleMs?: number;
  /** `UpstreamRetries`; default 3. */
  readonly retries?: number;
}

const usualEndPoint = 'https://api.openai.com/v1';
const usualModel = 'gpt-4o-mini';

/**
 * The provider that the settings ask for, loaded on first use. The demo provider serves only where neither endpoint nor
 * key is set: it never stands in for a provider that was configured (design §7).
 */
export function providerSource(settings: ProviderSettings): () => Promise<ModelProvider> {
  let loading: Promise<ModelProvider> | undefined;
  return () => {
    loading ??= load(settings);
    return loading;
  };
}

async function load({ endPoint, apiKey, model, ...rest }: ProviderSettings): Promise<ModelProvider> {
  if (endPoint === '' && apiKey === '') {
    const { DemoProvider } = await import('./demo.ts');
    return new DemoProvider();
  }
  const { OpenAiProvider } = await import('./openai.ts');
  return new OpenAiProvider({ endPoint: endPoint || usualEndPoint, apiKey, model: model || usualModel, ...rest });
}
