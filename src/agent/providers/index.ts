/** Model providers: services with a wire of their own, OpenAI-compatible upstreams, and the demo without a model. */
export type { FactSource, KnownFacts } from './catalogue/index.ts';
export { CatalogueError, catalogueUrl, costOf, refreshCatalogue } from './catalogue/index.ts';
export { modelSource } from './choose.ts';
export { preloadProviders } from './load.ts';
export type { ModelList, ModelRouter } from './router.ts';
export {
  derivedKind,
  type ModelSettings,
  modelHost,
  modelSettingsOf,
  type ProviderSettings,
  type SidecarUpstream,
} from './settings.ts';
export { agentLimit } from './upstream/errors.ts';
