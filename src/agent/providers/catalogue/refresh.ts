import { join } from 'node:path';
import * as v from 'valibot';
import { outgoingFetch } from '../../../http/index.ts';
import { ensurePrivateDirectory, type JsonFile, readJson, writeFileAtomic } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { Catalogue, type CatalogueModel } from './catalogue.ts';
import { listedProviders } from './providers.ts';

/** Public list of models that `oratorio model list --refresh` reads: https://models.dev. */
export const catalogueUrl = 'https://models.dev/api.json';

/** A reseller has prices of its own for the models of all others: far too many for the catalogue of a release. */
const providers: Readonly<Record<string, string>> = { ...listedProviders, openrouter: 'openrouter' };

const usd = v.pipe(v.number(), v.minValue(0));
const cost = { input: usd, output: usd, cache_read: v.optional(usd), cache_write: v.optional(usd) };
/** Fields that are read; services add others. */
const ListedModel = v.object({
  id: v.string(),
  reasoning: v.optional(v.boolean()),
  tool_call: v.optional(v.boolean()),
  modalities: v.optional(v.object({ input: v.array(v.string()) })),
  cost: v.optional(v.object({ ...cost, context_over_200k: v.optional(v.object(cost)) })),
  limit: v.object({
    context: v.pipe(v.number(), v.minValue(1)),
    output: v.optional(v.pipe(v.number(), v.minValue(0))),
  }),
});
type ListedModel = v.InferOutput<typeof ListedModel>;
const List = v.record(v.string(), v.object({ models: v.record(v.string(), v.unknown()) }));

/** The list cannot be fetched or read. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}

export const catalogueFile = (home: string): string => join(home, 'models.json');

/** Reads the catalogue that the user has refreshed. */
export const readRefreshed = (home: string): JsonFile<Catalogue> => readJson(catalogueFile(home), Catalogue);

export interface RefreshOptions {
  readonly home: string;
  /** Address of a list in the form of models.dev. */
  readonly url: string;
  readonly signal: AbortSignal;
}

/**
 * Fetches the public list of models into `<home>/models.json`. Skips unknown entries; a list without a known
 * provider changes nothing.
 * @throws CatalogueError
 */
export async function refreshCatalogue({ home, url, signal }: RefreshOptions): Promise<Catalogue> {
  const list = v.safeParse(List, await fetched(url, signal));
  const entries = Object.entries(providers).flatMap(([theirs, name]) => {
    const models = list.success ? Object.values(list.output[theirs]?.models ?? {}).flatMap(modelOf) : [];
    return models.length > 0 ? [[name, models] as const] : [];
  });
  if (entries.length === 0) throw new CatalogueError(`${url} is not a list of models.`);
  const catalogue = { released: new Date().toISOString().slice(0, 10), providers: Object.fromEntries(entries) };
  ensurePrivateDirectory(home);
  writeFileAtomic(catalogueFile(home), `${JSON.stringify(catalogue)}\n`);
  return catalogue;
}

const { refreshMs, refreshBytes } = defaults.cli;

async function fetched(url: string, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await outgoingFetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(refreshMs)]) });
    if (!response.ok) throw new CatalogueError(`${url} answers with ${response.status}.`);
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (text.length > refreshBytes) throw new CatalogueError(`${url} is longer than ${refreshBytes} bytes.`);
    }
    return JSON.parse(text);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CatalogueError) throw error;
    const reason = error instanceof SyntaxError ? 'it is no JSON' : reasonOf(error);
    throw new CatalogueError(`${url} cannot be read: ${reason}.`, { cause: error });
  }
}

const reasonOf = (error: unknown): string => {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
};

function modelOf(value: unknown): readonly CatalogueModel[] {
  const parsed = v.safeParse(ListedModel, value);
  if (!parsed.success || parsed.output.tool_call === false) return [];
  const { id, reasoning, modalities, cost: price, limit } = parsed.output;
  const tier = price?.context_over_200k;
  return [
    {
      id,
      contextWindow: limit.context,
      ...(limit.output && { maxOutputTokens: limit.output }),
      ...(price && {
        price: { ...priceOf(price), ...(tier && { tiers: [{ aboveInput: 200_000, ...priceOf(tier) }] }) },
      }),
      // The list does not say which efforts a model has.
      ...(reasoning === false && { efforts: [] }),
      ...(modalities?.input.includes('image') && { images: true }),
    },
  ];
}

const priceOf = ({ input, output, cache_read, cache_write }: NonNullable<ListedModel['cost']>) => ({
  input,
  output,
  ...(cache_read !== undefined && { cachedInput: cache_read }),
  ...(cache_write !== undefined && { cacheWrite: cache_write }),
});
