/** Providers that a person connects by name: on a terminal with `oratorio login`, or on the page. Needs no Node and no valibot. */

/** A provider that `oratorio login` knows by name. */
export interface KnownProvider {
  readonly label: string;
  readonly kind: 'openai' | 'anthropic' | 'google' | 'openai-compatible';
  /** Empty: the usual end point of the kind, or the user's answer. */
  readonly endPoint: string;
  /** Page that issues keys; absent: no key is needed. */
  readonly keyPage?: string;
  /** Offered when the provider lists no models. */
  readonly model?: string;
}

/** Providers by the name that the command takes. The end points are those of the providers' references. */
export const knownProviders = {
  openai: {
    label: 'OpenAI',
    kind: 'openai',
    endPoint: '',
    keyPage: 'https://platform.openai.com/api-keys',
    model: 'gpt-6-sol',
  },
  anthropic: {
    label: 'Anthropic',
    kind: 'anthropic',
    endPoint: '',
    keyPage: 'https://platform.claude.com/settings/keys',
    model: 'claude-sonnet-5-5',
  },
  google: {
    label: 'Google Gemini',
    kind: 'google',
    endPoint: '',
    keyPage: 'https://aistudio.google.com/apikey',
    model: 'gemini-pro-latest',
  },
  openrouter: {
    label: 'OpenRouter',
    kind: 'openai-compatible',
    endPoint: 'https://openrouter.ai/api/v1',
    keyPage: 'https://openrouter.ai/settings/keys',
  },
  deepseek: {
    label: 'DeepSeek',
    kind: 'openai-compatible',
    endPoint: 'https://api.deepseek.com/v1',
    keyPage: 'https://platform.deepseek.com/api_keys',
  },
  kimi: {
    label: 'Kimi (Moonshot AI)',
    kind: 'openai-compatible',
    endPoint: 'https://api.moonshot.ai/v1',
    keyPage: 'https://platform.moonshot.ai/console/api-keys',
  },
  glm: {
    label: 'GLM (Z.ai)',
    kind: 'openai-compatible',
    endPoint: 'https://api.z.ai/api/paas/v4',
    keyPage: 'https://z.ai/manage-apikey/apikey-list',
  },
  mistral: {
    label: 'Mistral',
    kind: 'openai-compatible',
    endPoint: 'https://api.mistral.ai/v1',
    keyPage: 'https://console.mistral.ai/api-keys',
  },
  xai: { label: 'xAI', kind: 'openai-compatible', endPoint: 'https://api.x.ai/v1', keyPage: 'https://console.x.ai' },
  groq: {
    label: 'Groq',
    kind: 'openai-compatible',
    endPoint: 'https://api.groq.com/openai/v1',
    keyPage: 'https://console.groq.com/keys',
  },
  ollama: { label: 'Ollama (this machine)', kind: 'openai-compatible', endPoint: 'http://127.0.0.1:11434/v1' },
  'llama.cpp': {
    label: 'llama.cpp server (this machine)',
    kind: 'openai-compatible',
    endPoint: 'http://127.0.0.1:8080/v1',
  },
  lmstudio: { label: 'LM Studio (this machine)', kind: 'openai-compatible', endPoint: 'http://127.0.0.1:1234/v1' },
  vllm: { label: 'vLLM (this machine)', kind: 'openai-compatible', endPoint: 'http://127.0.0.1:8000/v1' },
  other: { label: 'Another OpenAI-compatible service', kind: 'openai-compatible', endPoint: '', keyPage: '' },
} as const satisfies Record<string, KnownProvider>;
export type KnownProviderName = keyof typeof knownProviders;

export const knownProviderNames = Object.keys(knownProviders) as KnownProviderName[];
