import { withoutUserInfo } from '../../lib/index.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { isSecret } from './shape.ts';
import type { SettingsSource } from './source.ts';

/** Settings for display: a secret shows only whether it is set. */
export interface SettingsDiagnostics {
  /** Revision that a change of the file must name. */
  readonly revision: string;
  readonly writable: boolean;
  readonly file: string;
  readonly settings: JsonObject;
  readonly warnings: readonly string[];
  /** Reason why the current file is not used; null when it is. */
  readonly problem: string | null;
  readonly restartNeededFor: readonly string[];
  /** Settings that the environment overrides. */
  readonly fromEnvironment: readonly { readonly path: string; readonly variable: string }[];
}

/** Effective settings, their sources and their problems. */
export function diagnosticsOf(source: SettingsSource): SettingsDiagnostics {
  const { loaded, problem, restartNeededFor, place } = source;
  return {
    revision: loaded.revision,
    writable: loaded.settings.Settings.Writable,
    file: place.file,
    settings: masked(loaded.settings, '') as JsonObject,
    warnings: loaded.warnings,
    problem: problem?.message ?? null,
    restartNeededFor,
    fromEnvironment: [...loaded.fromEnvironment].map(([path, variable]) => ({ path, variable })),
  };
}

/** Masks secrets: `{set: true}` stands for a secret, `{set: false}` for an empty one. Addresses lose user, password and query. */
function masked(value: unknown, path: string): unknown {
  if (isSecret(path)) return { set: value !== '' };
  if (typeof value === 'string') return withoutCredentials(value);
  if (Array.isArray(value)) return value.map((each) => masked(each, `${path}[]`));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, masked(each, path === '' ? key : `${path}.${key}`)]),
  );
}

function withoutCredentials(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\//i.test(text)) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url?.host) return withoutUserInfo(text);
  if (url.username === '' && url.password === '' && url.search === '') return text;
  url.username = '';
  url.password = '';
  url.search = '';
  return url.href;
}
