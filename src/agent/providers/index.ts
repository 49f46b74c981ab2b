/** Model providers: an OpenAI-compatible upstream, the demo without a model, and scripted answers for tests. */
export { type ProviderSettings, providerSource } from './choose.ts';
