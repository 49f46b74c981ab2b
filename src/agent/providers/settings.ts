import type { Config, FactsOfModel, ProviderKind } from '../../config/index.ts';
import type { ReasoningEffort } from '../../protocol/index.ts';

/** One provider and its key. */
export interface ProviderSettings {
  readonly kind: ProviderKind;
  /** Empty: the usual one of the kind. */
  readonly endPoint: string;
  readonly apiKey: string;
  /** Program and arguments that print the key; used when `apiKey` is empty. */
  readonly apiKeyCommand: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

/** Settings that select providers and models. */
export interface ModelSettings {
  readonly main: ProviderSettings;
  /** Empty: the usual one of the main provider. */
  readonly model: string;
  /** Further providers, for models written as `name/model`. */
  readonly providers: Readonly<Record<string, ProviderSettings>>;
  /** Interface of OpenAI. */
  readonly wire: 'auto' | 'responses' | 'chat';
  readonly effort: ReasoningEffort | undefined;
  /** 0: as the provider does. */
  readonly maxOutputTokens: number;
  /** Facts that override the catalogue, by model. */
  readonly models: Readonly<Record<string, FactsOfModel>>;
  /** Tokens of any model's window; 0: as the catalogue says. */
  readonly contextWindow: number;
  /** False: answers of chat completions are requested whole. */
  readonly streamUpstream: boolean;
  /** Silence after which a request has failed, in milliseconds. */
  readonly idleMs: number;
}

/** Address and key of a sidecar, which take the place of the configured ones. It speaks chat completions. */
export interface SidecarUpstream {
  readonly endpoint: string;
  readonly apiKey: string;
}

export function modelSettingsOf(config: Config, sidecar?: SidecarUpstream): ModelSettings {
  const { Providers, Compaction } = config;
  return {
    main: sidecar
      ? { ...plain, kind: 'openai-compatible', endPoint: sidecar.endpoint, apiKey: sidecar.apiKey }
      : mainProvider(config),
    model: config.Model,
    providers: Object.fromEntries(
      Object.entries(Providers).map(([name, { Kind, EndPoint, ApiKey, ApiKeyCommand, Headers }]) => [
        name,
        { kind: Kind, endPoint: EndPoint, apiKey: ApiKey, apiKeyCommand: ApiKeyCommand, headers: Headers },
      ]),
    ),
    wire: config.Wire,
    effort: config.ReasoningEffort,
    maxOutputTokens: config.MaxOutputTokens,
    models: config.Models,
    contextWindow: Compaction.ContextWindow,
    streamUpstream: config.StreamUpstream,
    idleMs: config.UpstreamIdleMs,
  };
}

const plain = { apiKeyCommand: [], headers: {} } as const;

function mainProvider({ Provider, EndPoint, ApiKey, ApiKeyCommand, Model }: Config): ProviderSettings {
  const hasKey = ApiKey !== '' || ApiKeyCommand.length > 0;
  return {
    ...plain,
    kind: Provider ?? derivedKind({ endPoint: EndPoint, hasKey, model: Model }),
    endPoint: EndPoint,
    apiKey: ApiKey,
    apiKeyCommand: ApiKeyCommand,
  };
}

/** Kinds by the host that serves them. */
const hosts: Readonly<Record<string, ProviderKind>> = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
  'generativelanguage.googleapis.com': 'google',
};

/** Host that answers for a model; null for the demo provider, and for an end point that is no URL. */
export function modelHost({
  main,
  providers,
  model,
}: Pick<ModelSettings, 'main' | 'providers' | 'model'>): string | null {
  const { kind, endPoint } = providers[model.split('/', 1)[0] ?? ''] ?? main;
  if (endPoint !== '') return URL.canParse(endPoint) ? new URL(endPoint).host : null;
  return Object.entries(hosts).find(([, served]) => served === kind)?.[0] ?? null;
}

/**
 * Derives the kind of a provider from its host, or from the name of the model where no end point is set. The demo provider
 * serves only where neither end point nor key is set: it never stands in for a provider that was configured (design §7).
 */
export function derivedKind({
  endPoint,
  hasKey,
  model,
}: {
  readonly endPoint: string;
  readonly hasKey: boolean;
  readonly model: string;
}): ProviderKind {
  if (endPoint === '') {
    if (!hasKey) return 'demo';
    if (/^claude-/.test(model)) return 'anthropic';
    return /^gemini-/.test(model) ? 'google' : 'openai';
  }
  if (!URL.canParse(endPoint)) return 'openai-compatible';
  const { hostname, pathname } = new URL(endPoint);
  // Google serves an interface for clients of OpenAI below its own.
  if (/\/openai\/?$/.test(pathname) && hostname !== 'api.openai.com') return 'openai-compatible';
  return hosts[hostname] ?? 'openai-compatible';
}
