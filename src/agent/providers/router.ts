import type { ModelEvent, ModelInfo, ModelProvider, ModelRequest } from '../model.ts';
import { type Catalogue, demoVendor, factsOf, type KnownFacts, nearestEffort } from './catalogue/index.ts';
import { loadProvider } from './load.ts';
import type { ModelSettings, ProviderSettings } from './settings.ts';

/** A model and the provider that serves it. */
interface Route {
  /** Configured name of the provider; its kind for the main one. */
  readonly name: string;
  /** Name of the model at the provider. */
  readonly model: string;
  readonly facts: KnownFacts;
}

/** Models of one provider; the catalogue's models when the provider cannot be asked. */
export type ModelList =
  | { readonly provider: string; readonly models: readonly ModelInfo[] }
  | { readonly provider: string; readonly error: unknown; readonly catalogued: readonly ModelInfo[] };

/** Catalogues, the stronger one first. */
export interface Catalogues {
  /** Catalogue that `oratorio model list --refresh` fetched. */
  readonly refreshed: Catalogue | undefined;
  readonly catalogue: Catalogue;
}

/**
 * All configured providers as one: `name/model` reaches the provider of that name, any other model the main one. Providers are
 * loaded with the first request that needs them; a failed load is tried again with the next.
 */
export class ModelRouter implements ModelProvider {
  readonly name: string;
  readonly #settings: ModelSettings;
  readonly #catalogues: Catalogues;
  readonly #loaded = new Map<string, Promise<ModelProvider>>();
  readonly #routes = new Map<string, Route>();
  /** Facts that services list, by `provider/model`. */
  readonly #listed = new Map<string, Pick<ModelInfo, 'contextWindow' | 'maxOutputTokens'>>();
  readonly #onKey: ((key: string) => void) | undefined;
  #model = '';

  /** @param onKey called with every key that a command printed */
  constructor(settings: ModelSettings, catalogues: Catalogues, onKey?: (key: string) => void) {
    this.#settings = settings;
    this.#onKey = onKey;
    this.#catalogues = catalogues;
    // Clients know every upstream that speaks chat completions by this name.
    this.name = settings.main.kind === 'openai-compatible' ? 'openai' : settings.main.kind;
  }

  /** Loads the main provider. @throws ModelError */
  async open(): Promise<this> {
    const { main, model } = this.#settings;
    const provider = await this.#provider(main.kind);
    this.#model = model.includes('/') && this.#named(model) ? model : provider.model;
    return this;
  }

  get model(): string {
    return this.#model;
  }

  async stream(request: ModelRequest, emit: (event: ModelEvent) => void, signal: AbortSignal): Promise<void> {
    const { name, model, facts } = this.#route(request.model);
    const { effort = this.#settings.effort, maxOutputTokens = this.#settings.maxOutputTokens || undefined } = request;
    const provider = await this.#provider(name);
    const nearest = effort && nearestEffort(effort, facts.efforts);
    await provider.stream({ ...request, model, effort: nearest, maxOutputTokens }, emit, signal);
  }

  /** Models of all providers that can be asked, with their facts. @throws the error of the main one when none can */
  async listModels(signal: AbortSignal): Promise<readonly ModelInfo[]> {
    const lists = await this.lists(signal);
    const [first] = lists;
    if (first && 'error' in first && lists.every((list) => 'error' in list)) throw first.error;
    return lists.flatMap((list) => ('models' in list ? list.models : []));
  }

  /** Models of each provider with their facts, or why it cannot be asked. The main provider comes first. */
  lists(signal: AbortSignal): Promise<readonly ModelList[]> {
    const { main, providers } = this.#settings;
    return Promise.all(
      [main.kind, ...Object.keys(providers)].map(async (name) => {
        try {
          const models = await (await this.#provider(name)).listModels(signal);
          for (const info of models) this.#listed.set(`${name}/${info.id}`, info);
          this.#routes.clear();
          return { provider: name, models: models.map((info) => this.#described(name, info)) };
        } catch (error) {
          return { provider: name, error, catalogued: this.#catalogued(name) };
        }
      }),
    );
  }

  /** Models of the catalogues for a provider that does not list its own. */
  #catalogued(name: string): readonly ModelInfo[] {
    const vendor = vendorOf(this.#settingsOf(name));
    const { refreshed, catalogue } = this.#catalogues;
    const known = vendor === undefined ? [] : (refreshed?.providers[vendor] ?? catalogue.providers[vendor] ?? []);
    return known.map(({ id }) => this.#described(name, { id, ownedBy: vendor ?? name }));
  }

  facts(model?: string): KnownFacts {
    return this.#route(model).facts;
  }

  /** Configured name, else the kind or the host of the main provider. */
  serviceOf(model?: string): string {
    const { name } = this.#route(model);
    if (Object.hasOwn(this.#settings.providers, name)) return name;
    const { main } = this.#settings;
    if (main.kind !== 'openai-compatible') return main.kind;
    return vendorOf(main) ?? (URL.canParse(main.endPoint) ? new URL(main.endPoint).host : main.kind);
  }

  close(): void {
    for (const provider of this.#loaded.values()) {
      provider.then(
        (loaded) => loaded.close(),
        // A provider that could not be loaded has no connection; the request that needed it reported the error.
        () => undefined,
      );
    }
  }

  #described(name: string, info: ModelInfo): ModelInfo {
    const { contextWindow, maxOutputTokens, price, reasoning } = this.#factsOf(name, info.id);
    return {
      ...info,
      id: name === this.#settings.main.kind ? info.id : `${name}/${info.id}`,
      provider: name,
      contextWindow,
      reasoning,
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
      ...(price && { price }),
    };
  }

  #route(wanted: string = this.#model): Route {
    let route = this.#routes.get(wanted);
    if (!route) {
      const [name, model] = this.#named(wanted) ?? [this.#settings.main.kind, wanted];
      route = { name, model, facts: this.#factsOf(name, model) };
      this.#routes.set(wanted, route);
    }
    return route;
  }

  /** Provider and model of `name/model`; undefined for a model of the main provider, whose name may hold slashes. */
  #named(wanted: string): readonly [string, string] | undefined {
    const slash = wanted.indexOf('/');
    const name = wanted.slice(0, slash);
    return slash > 0 && Object.hasOwn(this.#settings.providers, name) ? [name, wanted.slice(slash + 1)] : undefined;
  }

  #settingsOf(name: string): ProviderSettings {
    const { main, providers } = this.#settings;
    return providers[name] ?? main;
  }

  #provider(name: string): Promise<ModelProvider> {
    let loading = this.#loaded.get(name);
    if (!loading) {
      loading = loadProvider({
        name,
        provider: this.#settingsOf(name),
        model: name === this.#settings.main.kind ? this.#settings.model : '',
        settings: this.#settings,
        factsOf: (model) => this.#factsOf(name, model),
        onKey: this.#onKey,
      });
      this.#loaded.set(name, loading);
      loading.catch(() => this.#loaded.delete(name));
    }
    return loading;
  }

  #factsOf(provider: string, model: string): KnownFacts {
    const { models, contextWindow } = this.#settings;
    return factsOf({
      provider,
      vendor: vendorOf(this.#settingsOf(provider)),
      model,
      settings: models[`${provider}/${model}`] ?? models[model],
      contextWindow,
      service: this.#listed.get(`${provider}/${model}`),
      ...this.#catalogues,
    });
  }
}

/** Providers of the catalogue by API host. */
const vendorHosts: Readonly<Record<string, string>> = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
  'generativelanguage.googleapis.com': 'google',
  'openrouter.ai': 'openrouter',
  'api.deepseek.com': 'deepseek',
  'api.moonshot.ai': 'kimi',
  'api.moonshot.cn': 'kimi',
  'api.z.ai': 'glm',
  'open.bigmodel.cn': 'glm',
  'api.mistral.ai': 'mistral',
  'api.x.ai': 'xai',
  'api.groq.com': 'groq',
  'api.cerebras.ai': 'cerebras',
  'api.minimax.io': 'minimax',
};

/**
 * Provider of the catalogue whose prices apply: by its kind, even behind a proxy, or by its host. Undefined for any other
 * provider, whose prices are unknown.
 */
export function vendorOf({ kind, endPoint }: Pick<ProviderSettings, 'kind' | 'endPoint'>): string | undefined {
  if (kind === 'demo') return demoVendor;
  if (kind === 'openai' || kind === 'anthropic' || kind === 'google') return kind;
  return URL.canParse(endPoint) ? vendorHosts[new URL(endPoint).hostname] : undefined;
}
