import { demoVendor } from './catalogue/index.ts';
import type { ProviderSettings } from './settings.ts';

/** Providers of the catalogue by the host of their interface. */
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
 * Provider of the catalogue whose prices hold: by its kind, also where a proxy stands in for it, or by its host. Undefined for
 * anything else, which sells at prices of its own.
 */
export function vendorOf({ kind, endPoint }: Pick<ProviderSettings, 'kind' | 'endPoint'>): string | undefined {
  if (kind === 'demo') return demoVendor;
  if (kind === 'openai' || kind === 'anthropic' || kind === 'google') return kind;
  return URL.canParse(endPoint) ? vendorHosts[new URL(endPoint).hostname] : undefined;
}
