import { type PlannedUserChange, planUserChange } from '../../config/index.ts';
import type { KnownProvider } from '../../protocol/index.ts';
import type { KeptSettings, UserPlace } from './kept.ts';

/** Settings that hold a key. */
export interface KeySettings {
  readonly ApiKey: string | undefined;
  readonly ApiKeyCommand: readonly string[] | undefined;
}

/** A provider, its key and the model, as a person has chosen them. */
export interface ModelAccount extends KeySettings {
  readonly kind: KnownProvider['kind'];
  readonly endPoint: string;
  /** Settings of the file that stay unchanged; undefined: another provider was in force. */
  readonly kept: KeptSettings | undefined;
}

/**
 * Plans the change of the user's file that connects a provider.
 *
 * @param setsEndPoint the address was given, so that it replaces a kept one
 * @throws ConfigError, ConfigChangeError
 */
export function planLogin(
  { home, env }: UserPlace,
  { kind, endPoint, ApiKey, ApiKeyCommand, kept }: ModelAccount,
  model: string,
  setsEndPoint = false,
): PlannedUserChange {
  const hasKey = ApiKey !== undefined || ApiKeyCommand !== undefined;
  // A kept value stays as the file spells it, also with a variable in it.
  const values = {
    Provider: kind,
    ...((!kept || setsEndPoint) && { EndPoint: endPoint || undefined }),
    ...((!kept || hasKey) && { ApiKey, ApiKeyCommand }),
    ...((!kept?.model || model !== kept.model) && { Model: model || undefined }),
  };
  return planUserChange({ home, env, set: Object.entries(values).map(([key, value]) => ({ path: [key], value })) });
}
