import { redactorFor, shortestUncertainSecret } from '../lib/index.ts';
import type { McpServerSettings } from '../protocol/index.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Stands for a value that is not shown; in a change it means: keep the stored value. */
export const masked = '…';

const secretName = /token|key|secret|passw|credential|auth/i;

/** The values of one server's settings that others must not see. */
export interface ServerSecrets {
  /** For texts of ours: every value that may be one is taken out. */
  readonly clean: (text: string) => string;
  /** Secrets in texts for the model: only those with the name of a secret, for it must be able to read the rest. */
  readonly cleanResult: (text: string) => string;
  /** Settings whose URL shows no credential. */
  readonly cleanUrl: (settings: McpServerSettings) => McpServerSettings;
}

/** @param cleanLogin removes the tokens of the user's log-in from a text */
export function secretsOf(
  settings: McpServerSettings,
  env: Environment,
  cleanLogin: (text: string) => string = (text) => text,
): ServerSecrets {
  const entries = settings.transport === 'stdio' ? stdioValues(settings, env) : httpValues(settings, env);
  const isCertain = ({ name }: NamedValue) => secretName.test(name);
  const valuesOf = (named: readonly NamedValue[]) => named.map(({ value }) => value);
  const possible = entries.filter((entry) => isCertain(entry) || entry.value.length >= shortestUncertainSecret);
  const cleanerOf = (named: readonly NamedValue[]) => {
    const cleanValues = redactorFor(valuesOf(named));
    return (text: string) => cleanLogin(cleanValues(text));
  };
  const clean = cleanerOf(possible);
  return {
    clean,
    cleanResult: cleanerOf(entries.filter(isCertain)),
    cleanUrl: (shown) => (shown.transport === 'stdio' ? shown : { ...shown, url: clean(shown.url) }),
  };
}

interface NamedValue {
  readonly name: string;
  readonly value: string;
}

function stdioValues(settings: McpServerSettings & { transport: 'stdio' }, env: Environment): NamedValue[] {
  return [
    ...Object.entries(settings.env).map(([name, value]) => ({ name, value })),
    ...settings.envVars.map((name) => ({ name, value: env[name] ?? '' })),
  ];
}

function httpValues(settings: McpServerSettings & { transport: 'streamableHttp' }, env: Environment): NamedValue[] {
  const bearer = settings.bearerTokenEnvVar;
  const { username, password, searchParams } = new URL(settings.url);
  return [
    ...Object.entries(settings.httpHeaders).map(([name, value]) => ({ name: `${name} (auth)`, value })),
    ...Object.values(settings.envHttpHeaders).map((name) => ({ name: `${name} (auth)`, value: env[name] ?? '' })),
    ...(bearer === undefined ? [] : [{ name: 'token', value: env[bearer] ?? '' }]),
    ...[username, password].map((value) => ({ name: 'auth', value })),
    ...[...searchParams].map(([name, value]) => ({ name, value })),
  ];
}

const maskAll = (values: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.keys(values).map((key) => [key, masked]));

/** The settings as they may be shown: names of variables and headers, not their values. */
export function maskSettings(settings: McpServerSettings): McpServerSettings {
  if (settings.transport === 'stdio') return { ...settings, env: maskAll(settings.env) };
  return { ...settings, httpHeaders: maskAll(settings.httpHeaders) };
}

/**
 * The settings with stored values in place of masked ones.
 * @param stored settings of this server in the configuration file
 * @returns the settings, or the name of a masked value for which nothing is stored
 */
export function unmaskSettings(
  settings: McpServerSettings,
  stored: unknown,
): { readonly ok: true; readonly settings: McpServerSettings } | { readonly ok: false; readonly missing: string } {
  const field = settings.transport === 'stdio' ? 'env' : 'httpHeaders';
  const values: Readonly<Record<string, string>> = settings.transport === 'stdio' ? settings.env : settings.httpHeaders;
  const kept = (stored as Readonly<Record<string, unknown>> | undefined)?.[field] as
    | Readonly<Record<string, unknown>>
    | undefined;
  const filled: Record<string, string> = {};
  for (const [key, value] of Object.entries(values)) {
    const old = kept && Object.hasOwn(kept, key) ? kept[key] : undefined;
    if (value === masked && typeof old !== 'string') return { ok: false, missing: `${field}.${key}` };
    filled[key] = value === masked ? String(old) : value;
  }
  return { ok: true, settings: { ...settings, [field]: filled } };
}
