/** Model providers: services with a wire of their own, OpenAI-compatible upstreams, and the demo without a model. */
export type { KnownFacts } from './catalogue/index.ts';
export { costOf } from './catalogue/index.ts';
export { modelSource } from './choose.ts';
export {
  derivedKind,
  type ModelSettings,
  modelSettingsOf,
  type ProviderSettings,
  type SidecarUpstream,
} from './settings.ts';
