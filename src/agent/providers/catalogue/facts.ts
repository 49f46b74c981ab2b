import type { FactsOfModel } from '../../../config/index.ts';
import { defaults, type ModelPrice, type ReasoningEffort, reasoningEfforts } from '../../../protocol/index.ts';
import type { ModelFacts } from '../../model.ts';
import { type Catalogue, type CatalogueModel, modelIn } from './catalogue.ts';
import { familyOf } from './families.ts';
import { demoVendor } from './providers.ts';

/** Source of a fact, the strongest first. */
export const factSources = ['settings', 'service', 'refreshed', 'catalogue', 'family', 'default'] as const;
export type FactSource = (typeof factSources)[number];

/** Facts of a model, each with its source. */
export interface KnownFacts extends ModelFacts {
  /** Efforts that the model has; undefined: unknown. */
  readonly efforts: readonly ReasoningEffort[] | undefined;
  readonly sources: {
    readonly contextWindow: FactSource;
    readonly maxOutputTokens: FactSource | undefined;
    readonly price: FactSource | undefined;
    readonly efforts: FactSource | undefined;
  };
}

export interface FactsQuery {
  /** Configured name of the provider. */
  readonly provider: string;
  /** Provider of the catalogue that sells the model; undefined for one that the catalogue does not know. */
  readonly vendor: string | undefined;
  readonly model: string;
  /** Overrides of the settings. */
  readonly settings: FactsOfModel | undefined;
  /** Window for every model, from the settings; 0: none. */
  readonly contextWindow: number;
  /** Limits in the service's list of models. */
  readonly service:
    | { readonly contextWindow?: number | undefined; readonly maxOutputTokens?: number | undefined }
    | undefined;
  readonly refreshed: Catalogue | undefined;
  readonly catalogue: Catalogue;
}

type Layer = Partial<Omit<CatalogueModel, 'id'>> | undefined;

/** Looks a model up, fact by fact, in the strongest layer that has it. An unknown price stays unknown. */
export function factsOf(query: FactsQuery): KnownFacts {
  const { provider, model, settings, contextWindow, service, refreshed, catalogue } = query;
  const layers: readonly (readonly [FactSource, Layer])[] = [
    ['settings', settingsLayer(settings, contextWindow)],
    ['service', service && known({ contextWindow: service.contextWindow, maxOutputTokens: service.maxOutputTokens })],
    ['refreshed', refreshed && found(refreshed, query)],
    ['catalogue', found(catalogue, query)],
    ['family', familyOf(model)],
    ['default', { contextWindow: defaults.upstream.contextWindow }],
  ];
  const first = <K extends keyof NonNullable<Layer>>(key: K) => {
    const layer = layers.find(([, facts]) => facts?.[key] !== undefined);
    return { value: layer?.[1]?.[key], source: layer?.[0] };
  };
  const [window, output, price, efforts] = [
    first('contextWindow'),
    first('maxOutputTokens'),
    first('price'),
    first('efforts'),
  ];
  return {
    provider,
    owner: `${provider}/${model}`,
    contextWindow: window.value ?? defaults.upstream.contextWindow,
    maxOutputTokens: output.value,
    price: price.value,
    efforts: efforts.value,
    reasoning: (efforts.value ?? []).length > 0,
    sources: {
      contextWindow: window.source ?? 'default',
      maxOutputTokens: output.source,
      price: price.source,
      efforts: efforts.source,
    },
  };
}

function settingsLayer(settings: FactsOfModel | undefined, contextWindow: number): Layer {
  const { ContextWindow = contextWindow || undefined, MaxOutputTokens, Price, Efforts } = settings ?? {};
  return known({ contextWindow: ContextWindow, maxOutputTokens: MaxOutputTokens, price: Price, efforts: Efforts });
}

/** A model that another provider resells keeps its window; its price there is unknown. */
function found({ providers }: Catalogue, { vendor, model }: FactsQuery): Layer {
  if (vendor === demoVendor) return { price: { input: 0, output: 0 }, efforts: [] };
  if (vendor !== undefined) {
    const own = modelIn(providers[vendor], model);
    if (own) return own;
  }
  for (const models of Object.values(providers)) {
    const other = modelIn(models, model);
    if (!other) continue;
    const { price: _, ...rest } = other;
    return rest;
  }
  return undefined;
}

function known(facts: { readonly [K in keyof NonNullable<Layer>]: NonNullable<Layer>[K] | undefined }): Layer {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** The effort of a model that is nearest to the wanted one, the lesser of two; undefined for a model that does not reason. */
export function nearestEffort(
  wanted: ReasoningEffort,
  efforts: readonly ReasoningEffort[] | undefined,
): ReasoningEffort | undefined {
  if (!efforts || efforts.includes(wanted)) return wanted;
  const rank = (effort: ReasoningEffort) => reasoningEfforts.indexOf(effort);
  return efforts.toSorted(
    (a, b) => Math.abs(rank(a) - rank(wanted)) - Math.abs(rank(b) - rank(wanted)) || rank(a) - rank(b),
  )[0];
}

/** Tokens of one request, as `ModelUsage` counts them. */
interface Counts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
}

const perMillion = 1e6;

/** Cost of one request in US dollars. The tier is chosen by the input of the request. */
export function costOf(counts: Counts, price: ModelPrice): number {
  const { inputTokens, outputTokens, cachedInputTokens: cached = 0, cacheWriteTokens: written = 0 } = counts;
  const { tiers = [], ...base } = price;
  const tier = tiers
    .filter(({ aboveInput }) => inputTokens > aboveInput)
    .reduce<(typeof tiers)[number] | undefined>(
      (highest, each) => (highest && highest.aboveInput >= each.aboveInput ? highest : each),
      undefined,
    );
  const { input, output, cachedInput = input, cacheWrite = input } = tier ?? base;
  const fresh = Math.max(0, inputTokens - cached - written);
  return (fresh * input + cached * cachedInput + written * cacheWrite + outputTokens * output) / perMillion;
}
