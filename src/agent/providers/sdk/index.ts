/** Wires of single services, through the libraries for them. Loaded on first use. */
export { anthropicWire } from './anthropic.ts';
export { googleWire } from './google.ts';
export { SdkProvider, type SdkProviderOptions } from './provider.ts';
export { responsesWire } from './responses.ts';
