/**
 * Providers by their names in public lists of models (https://models.dev, and the project that `scripts/models.ts` reads) and in our
 * catalogue.
 */
export const listedProviders = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  deepseek: 'deepseek',
  moonshotai: 'kimi',
  zai: 'glm',
  mistral: 'mistral',
  xai: 'xai',
  groq: 'groq',
  cerebras: 'cerebras',
  minimax: 'minimax',
} as const;

/** The demo costs nothing. */
export const demoVendor = 'demo';
