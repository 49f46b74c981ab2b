import type { ModelProvider } from '../model.ts';
import { builtInCatalogue, type Catalogue } from './catalogue/index.ts';
import { ModelRouter } from './router.ts';
import type { ModelSettings } from './settings.ts';

export interface ModelSourceOptions {
  /** Reads the catalogue that the user has refreshed. */
  readonly refreshed?: () => Promise<Catalogue | undefined>;
  /** Called with every key that a command printed, before it is used. */
  readonly onKey?: (key: string) => void;
}

/** Returns the configured providers as one, loaded on first use. A failed load is tried again with the next use. */
export function modelSource(settings: ModelSettings, options: ModelSourceOptions = {}): () => Promise<ModelProvider> {
  let loading: Promise<ModelProvider> | undefined;
  return () => {
    loading ??= open(settings, options).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

async function open(settings: ModelSettings, { refreshed, onKey }: ModelSourceOptions): Promise<ModelProvider> {
  const catalogues = { catalogue: await builtInCatalogue(), refreshed: await refreshed?.() };
  return new ModelRouter(settings, catalogues, onKey).open();
}
