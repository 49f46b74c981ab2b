import { realpathSync } from 'node:fs';
import { ensurePrivateDirectory, setMember, writeFileAtomic } from '../lib/index.ts';
import { ConfigChangeError } from './change.ts';
import { userConfigFile } from './home.ts';
import { canonical, type Layer } from './layers.ts';
import { configIssues, resolveConfig } from './load.ts';
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
  /** Writes the file, mode 0600. */
  apply(): void;
}

/**
 * Plans a change of the user's own configuration file; everything else in it stays unchanged.
 * @throws ConfigError for a file that cannot be read, ConfigChangeError for a change that makes the configuration invalid
 */
export function planUserChange({ home, env, set }: UserChange): PlannedUserChange {
  const file = userConfigFile(home);
  const before = readUserText(home) ?? '';
  const text = set.reduce(
    (changed, { path: [key, ...inner], value }) =>
      setMember(changed, [spellingIn(file, changed, key), ...inner], value),
    before.trim() === '' ? '{}\n' : before,
  );
  const layer = layerOf(file, text);
  const issues = configIssues([layer], env);
  if (issues.length > 0) throw new ConfigChangeError(issues);
  return {
    file,
    config: resolveConfig([layer], env).config,
    apply() {
      ensurePrivateDirectory(home);
      writeFileAtomic(linkTarget(file), text, { mode: 0o600 });
    },
  };
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
