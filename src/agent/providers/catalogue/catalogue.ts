import * as v from 'valibot';
import { ModelPrice, reasoningEfforts } from '../../../protocol/index.ts';

/** One model of a catalogue. */
const CatalogueModel = v.object({
  id: v.string(),
  contextWindow: v.pipe(v.number(), v.minValue(1)),
  maxOutputTokens: v.optional(v.pipe(v.number(), v.minValue(1))),
  price: v.optional(ModelPrice),
  /** Empty: the model does not reason. Absent: unknown. */
  efforts: v.optional(v.array(v.picklist(reasoningEfforts))),
  images: v.optional(v.boolean()),
});
export type CatalogueModel = v.InferOutput<typeof CatalogueModel>;

/** Models by provider, as `catalogue.generated.json` and `<home>/models.json` hold them. */
export const Catalogue = v.object({
  released: v.string(),
  providers: v.record(v.string(), v.array(CatalogueModel)),
});
export type Catalogue = v.InferOutput<typeof Catalogue>;

/** Loads the catalogue of the repository. */
export async function builtInCatalogue(): Promise<Catalogue> {
  const { default: data } = await import('./catalogue.generated.json', { with: { type: 'json' } });
  // Written by our own script, and tested against this schema.
  return data as Catalogue;
}

/** Names that a model may have in a catalogue: unchanged, without a date, without its vendor. */
export function namesOf(model: string): readonly string[] {
  const bare = model.slice(model.lastIndexOf('/') + 1);
  const names = [model, undated(model), bare, undated(bare)];
  return [...new Set(names.filter((name) => name !== ''))];
}

/** `-2026-01-31`, `-20260131`, `@20260131`, `-latest`, `:free` and the like. */
const undated = (name: string): string => name.replace(/(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)|:[a-z]+)$/, '');

/** Finds a model in the list of one provider. */
export function modelIn(models: readonly CatalogueModel[] | undefined, model: string): CatalogueModel | undefined {
  for (const name of namesOf(model)) {
    const found = models?.find(({ id }) => id === name);
    if (found) return found;
  }
  return undefined;
}
