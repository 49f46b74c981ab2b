import { ConfigError, loadConfig } from '../../config/index.ts';
import type { KnownProvider } from '../../protocol/index.ts';
import { modelSettingsOf } from '../providers/index.ts';

/** Place of the user's settings, and the variables that they name. */
export interface UserPlace {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Settings of the provider in force, which a log-in for the same provider does not change. Empty: not set. */
export interface KeptSettings {
  readonly endPoint: string;
  readonly model: string;
}

/**
 * Address and model of the user's file, if it connects the provider of a log-in already. A company's address stands in for the
 * provider of its kind; services that speak chat completions differ by their addresses.
 * @returns undefined for another provider, or a file that cannot be read
 */
export function keptSettings({ home, env }: UserPlace, { kind, endPoint }: KnownProvider): KeptSettings | undefined {
  try {
    const { config } = loadConfig({ home, workspace: undefined, env });
    const { main, model } = modelSettingsOf(config);
    if (main.kind !== kind) return undefined;
    const isSame =
      kind !== 'openai-compatible' || (main.endPoint !== '' && (endPoint === '' || isAlike(main.endPoint, endPoint)));
    return isSame ? { endPoint: main.endPoint, model } : undefined;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

const isAlike = (one: string, other: string): boolean => withoutSlash(one) === withoutSlash(other);

const withoutSlash = (url: string): string => url.replace(/(?<!\/)\/+$/, '');
