import { join } from 'node:path';
import * as v from 'valibot';
import { readUntrustedJson, userHome } from '../lib/index.ts';
import type { SessionState } from './messages.ts';
import { valuesOf } from './offers.ts';

/** Models of a maker's own cloud, which its agent chooses automatically when the user has set up no provider. */
export interface HostedModels {
  /** Prefix of the models' names. */
  readonly prefix: string;
  /** Variable with the user's key for them. */
  readonly key: string;
  /** Log-in of the user, below the directory for data (XDG). */
  readonly login: { readonly file: string; readonly provider: string };
}

/** Whether the session would use a hosted model only because the user has set up nothing. */
export function isUnasked(
  { prefix, key, login }: HostedModels,
  { configOptions = [] }: SessionState,
  env: Readonly<Record<string, string>>,
): boolean {
  const models = configOptions.find(({ category }) => category === 'model');
  const names = [models?.currentValue, ...valuesOf(models)];
  const isHostedOnly =
    models !== undefined && names.every((name) => typeof name !== 'string' || name.startsWith(prefix));
  if (!isHostedOnly || env[key]) return false;
  const data = env['XDG_DATA_HOME'] ?? join(userHome(env), '.local', 'share');
  const logins = readUntrustedJson(join(data, login.file), v.record(v.string(), v.unknown()));
  return logins.kind !== 'ok' || !Object.hasOwn(logins.value, login.provider);
}
