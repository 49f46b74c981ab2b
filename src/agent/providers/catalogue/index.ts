/** Facts of models: windows, limits, prices, efforts. */
export { builtInCatalogue, Catalogue, type CatalogueModel, modelIn, namesOf } from './catalogue.ts';
export {
  costOf,
  type FactSource,
  type FactsQuery,
  factSources,
  factsOf,
  type KnownFacts,
  nearestEffort,
} from './facts.ts';
export { familyOf } from './families.ts';
export { demoVendor } from './providers.ts';
export { CatalogueError, catalogueUrl, readRefreshed, refreshCatalogue } from './refresh.ts';
