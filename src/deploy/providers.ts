/** Model providers that `server init` knows by name: where their OpenAI-compatible API is. The one table. */
export interface ModelProvider {
  readonly title: string;
  /** Null: the user says. */
  readonly endPoint: string | null;
  readonly needsKey: boolean;
  /** Offered when none is named; null: the user says. */
  readonly model: string | null;
}

export const providers = {
  openai: { title: 'OpenAI', endPoint: 'https://api.openai.com/v1', needsKey: true, model: 'gpt-4o' },
  anthropic: { title: 'Anthropic', endPoint: 'https://api.anthropic.com/v1', needsKey: true, model: null },
  openrouter: { title: 'OpenRouter', endPoint: 'https://openrouter.ai/api/v1', needsKey: true, model: null },
  deepseek: { title: 'DeepSeek', endPoint: 'https://api.deepseek.com/v1', needsKey: true, model: 'deepseek-chat' },
  mistral: { title: 'Mistral', endPoint: 'https://api.mistral.ai/v1', needsKey: true, model: null },
  gemini: {
    title: 'Gemini',
    endPoint: 'https://generativelanguage.googleapis.com/v1beta/openai',
    needsKey: true,
    model: null,
  },
  custom: { title: 'Another one with an OpenAI-compatible API', endPoint: null, needsKey: false, model: null },
  demo: { title: 'Demo: offline, no AI', endPoint: '', needsKey: false, model: 'demo' },
} as const satisfies Record<string, ModelProvider>;

export type ProviderName = keyof typeof providers;
export const isProvider = (name: string): name is ProviderName => Object.hasOwn(providers, name);
