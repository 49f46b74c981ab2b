import type { ModelProvider } from '../model.ts';
import { builtInCatalogue, type Catalogue } from './catalogue/index.ts';
import { ModelRouter } from './router.ts';
import type { ModelSettings } from './settings.ts';

/** Returns the configured providers as one, loaded on first use. A failed load is tried again with the next use. */
export function modelSource(
  settings: ModelSettings,
  refreshed: () => Promise<Catalogue | undefined> = async () => undefined,
): () => Promise<ModelProvider> {
  let loading: Promise<ModelProvider> | undefined;
  return () => {
    loading ??= open(settings, refreshed).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

async function open(settings: ModelSettings, refreshed: () => Promise<Catalogue | undefined>): Promise<ModelProvider> {
  const catalogues = { catalogue: await builtInCatalogue(), refreshed: await refreshed() };
  return new ModelRouter(settings, catalogues).open();
}
