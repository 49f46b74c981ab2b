import {
  type Config,
  type FactsOfModel,
  homeDirectory,
  type LoadedConfig,
  type ProviderKind,
  userConfigFile,
} from '../../config/index.ts';
import type { ReasoningEffort } from '../../protocol/index.ts';
import { isRecord } from './upstream/json.ts';

/** One provider and its key. */
export interface ProviderSettings {
  readonly kind: ProviderKind;
  /** Empty: the usual one of the kind. */
  readonly endPoint: string;
  readonly apiKey: string;
  /** Program and arguments that print the key; used when `apiKey` is empty. */
  readonly apiKeyCommand: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Address of a proxy, or `none`; empty: the environment decides. */
  readonly proxy: string;
  /** Absent: unknown. */
  readonly keySource?: KeySource | undefined;
}

/** Place of a key, for messages. */
export interface KeySource {
  readonly file: string;
  /** Next step of a user whose key is refused. */
  readonly remedy: string;
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
  /** Tokens of any model's window; 0: the window in the catalogue. */
  readonly contextWindow: number;
  /** False: answers of chat completions are requested whole. */
  readonly streamUpstream: boolean;
  /** Thoughts in the text of an answer count as reasoning. */
  readonly thoughtTags: boolean;
  /** Silence after which a request has failed, in milliseconds. */
  readonly idleMs: number;
}

/** Address and key of a sidecar, which take the place of the configured ones. It speaks chat completions. */
export interface SidecarUpstream {
  readonly endpoint: string;
  readonly apiKey: string;
}

/** Settings of the files, the weaker file first. */
type Layers = LoadedConfig['layers'];

/** @param layers name the files of the keys in messages */
export function modelSettingsOf(config: Config, sidecar?: SidecarUpstream, layers: Layers = []): ModelSettings {
  const { Providers, Compaction } = config;
  return {
    main: sidecar
      ? { ...plain, kind: 'openai-compatible', endPoint: sidecar.endpoint, apiKey: sidecar.apiKey }
      : mainProvider(config, layers),
    model: config.Model,
    providers: Object.fromEntries(
      Object.entries(Providers).map(([name, { Kind, EndPoint, ApiKey, ApiKeyCommand, Headers, Proxy: proxy }]) => [
        name,
        {
          ...{ kind: Kind, endPoint: EndPoint, apiKey: ApiKey, apiKeyCommand: ApiKeyCommand },
          ...{ headers: Headers, proxy, keySource: sourceOfProvider(layers, name) },
        },
      ]),
    ),
    wire: config.Wire,
    effort: config.ReasoningEffort,
    maxOutputTokens: config.MaxOutputTokens,
    models: config.Models,
    contextWindow: Compaction.ContextWindow,
    streamUpstream: config.StreamUpstream,
    thoughtTags: config.ThoughtTags,
    idleMs: config.UpstreamIdleMs,
  };
}

const plain = { apiKeyCommand: [], headers: {}, proxy: '' } as const;

function sourceOfProvider(layers: Layers, name: string): KeySource | undefined {
  const file = layers.findLast(({ settings: { Providers } }) => isRecord(Providers) && name in Providers)?.file;
  return file === undefined ? undefined : { file, remedy: `Correct Providers.${name} there, then: oratorio restart` };
}

function sourceOfKey(layers: Layers): KeySource | undefined {
  const layer = layers.findLast(
    ({ settings: { ApiKey, ApiKeyCommand } }) => Boolean(ApiKey) || ApiKeyCommand !== undefined,
  );
  if (!layer) return undefined;
  const { file, settings } = layer;
  if (file === userConfigFile(homeDirectory(process.env))) return { file, remedy: 'Connect again: oratorio login' };
  return { file, remedy: `Correct ${settings['ApiKey'] ? 'ApiKey' : 'ApiKeyCommand'} there, then: oratorio restart` };
}

function mainProvider(config: Config, layers: Layers): ProviderSettings {
  const { Provider, EndPoint, ApiKey, ApiKeyCommand, Model, Proxy: proxy } = config;
  const hasKey = ApiKey !== '' || ApiKeyCommand.length > 0;
  return {
    ...plain,
    kind: Provider ?? derivedKind({ endPoint: EndPoint, hasKey, model: Model }),
    endPoint: EndPoint,
    apiKey: ApiKey,
    apiKeyCommand: ApiKeyCommand,
    proxy,
    keySource: sourceOfKey(layers),
  };
}

/** Kinds by the host that serves them. */
const hosts: Readonly<Record<string, ProviderKind>> = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
  'generativelanguage.googleapis.com': 'google',
};

/** Host that answers for a model; null for the demo provider, and for an end point that is not a URL. */
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
