import { builtInCatalogue, readRefreshed } from './catalogue/index.ts';
import { ModelRouter } from './router.ts';
import type { ModelSettings } from './settings.ts';

export interface ModelSourceOptions {
  /** Home with the catalogue that the user has refreshed. */
  readonly home?: string;
  /** Called when that catalogue cannot be read. */
  readonly onProblem?: (problem: string) => void;
  /** Called with every key that a command printed, before it is used. */
  readonly onKey?: (key: string) => void;
}

/** Returns the configured providers as one, loaded on first use. A failed load is tried again with the next use. */
export function modelSource(settings: ModelSettings, options: ModelSourceOptions = {}): () => Promise<ModelRouter> {
  let loading: Promise<ModelRouter> | undefined;
  return () => {
    loading ??= open(settings, options).catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

async function open(settings: ModelSettings, { home, onProblem, onKey }: ModelSourceOptions): Promise<ModelRouter> {
  const refreshed = home === undefined ? undefined : readRefreshed(home);
  if (refreshed?.kind === 'invalid') onProblem?.(refreshed.problem);
  const catalogues = {
    catalogue: await builtInCatalogue(),
    refreshed: refreshed?.kind === 'ok' ? refreshed.value : undefined,
  };
  return new ModelRouter(settings, catalogues, onKey).open();
}
