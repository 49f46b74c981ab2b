import { realpathSync } from 'node:fs';
import { ensurePrivateDirectory, setMember, writeFileAtomic } from '../lib/index.ts';
import { ConfigChangeError } from './change.ts';
import { userConfigFile } from './home.ts';
import { canonical, type Layer } from './layers.ts';
import { configIssues, resolveConfig } from './load.ts';
import { whileLocked } from './lock-file.ts';
import { parseConfig } from './parse.ts';
import { readUserText } from './read-layer.ts';
import type { Config } from './schema.ts';

export interface UserChange {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Settings by their paths, in any case, with their new values; undefined takes one out. */
  readonly set: readonly { readonly path: readonly [string, ...string[]]; readonly value: unknown }[];
}

export interface PlannedUserChange {
  readonly file: string;
  /** Configuration of the user alone, as it will be. */
  readonly config: Config;
  /**
   * Writes the file, mode 0600.
   * @throws LockedFileError when another process holds the lock for too long; also throws like `planUserChange`
   */
  apply(): void;
}

/**
 * Plans a change of the user's own configuration file; everything else in it stays unchanged, also a change that another process makes
 * until `apply`.
 * @throws ConfigError for a file that cannot be read, ConfigChangeError for a change that makes the configuration invalid
 */
export function planUserChange(change: UserChange): PlannedUserChange {
  const { home, env } = change;
  const file = userConfigFile(home);
  const { layer } = changed(file, change);
  return {
    file,
    config: resolveConfig([layer], env).config,
    apply() {
      ensurePrivateDirectory(home);
      whileLocked(file, () => writeFileAtomic(linkTarget(file), changed(file, change).text, { mode: 0o600 }));
    },
  };
}

/** Current text of the file with the change. */
function changed(file: string, { home, env, set }: UserChange) {
  const before = readUserText(home) ?? '';
  const text = set.reduce(
    (now, { path: [key, ...inner], value }) => setMember(now, [spellingIn(file, now, key), ...inner], value),
    before.trim() === '' ? '{}\n' : before,
  );
  const layer = layerOf(file, text);
  const issues = configIssues([layer], env);
  if (issues.length > 0) throw new ConfigChangeError(issues);
  return { text, layer };
}

const layerOf = (file: string, text: string): Layer =>
  canonical({ file, settings: parseConfig(file, text) }, () => undefined);

/** The key as the file spells it: settings are found in any case. */
function spellingIn(file: string, text: string, key: string): string {
  const spelled = Object.keys(parseConfig(file, text));
  return spelled.findLast((each) => each.toLowerCase() === key.toLowerCase()) ?? key;
}

/** A file that users link from elsewhere stays a link. */
function linkTarget(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    // The file is missing, or a dangling link, which is replaced.
    return file;
  }
}
