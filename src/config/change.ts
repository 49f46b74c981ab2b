import { createHash } from 'node:crypto';
import { setMember } from '../lib/index.ts';
import { ConfigError } from './error.ts';
import { workspaceConfigFile } from './home.ts';
import { needsRestart, whyReadOnly } from './json-schema.ts';
import { entriesOf, type Layer } from './layers.ts';
import { configIssues, resolveConfig, userLayers, workspaceLayer } from './load.ts';
import { isJsonObject, parseConfig } from './parse.ts';
import { readWorkspaceText } from './read-layer.ts';
import { Config } from './schema.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Workspace and home of a configuration, and the environment of its variables. */
export interface ConfigPlace {
  /** The user's home of Oratorio, see `homeDirectory`. */
  readonly home: string;
  readonly workspace: string;
  readonly env: Environment;
}

/** One invalid setting. The message completes "must be …" or is a sentence; it never has the value. */
export interface ConfigIssue {
  readonly path: string;
  readonly message: string;
}

/** A change that was not made. */
export class ConfigChangeError extends Error {
  override readonly name = 'ConfigChangeError';
  readonly issues: readonly ConfigIssue[];

  constructor(issues: readonly ConfigIssue[]) {
    const [first] = issues;
    super(first === undefined ? 'the change is not possible' : `${first.path}: ${first.message}`);
    this.issues = issues;
  }
}

/** Content of a file; undefined for a missing one. */
export interface ConfigSource {
  readonly file: string;
  readonly text: string | undefined;
  /** Differs when the text does. */
  readonly revision: string;
}

/** Reads a workspace's own configuration file. @throws ConfigError when it is there and cannot be read */
export function workspaceSource(workspace: string): ConfigSource {
  const text = readWorkspaceText(workspace);
  const revision = createHash('sha256')
    .update(text ?? '')
    .digest('base64url')
    .slice(0, 22);
  return { file: workspaceConfigFile(workspace), text, revision };
}

/** Result of a change. Nothing is written yet. */
export interface PlannedChange {
  /** The new text of the workspace's file: the rest of the text is unchanged. */
  readonly text: string;
  /** Changed settings that hold only after a restart. */
  readonly restartNeededFor: readonly string[];
}

/**
 * Plans a change of the workspace's own file: key paths (`Api.Port`, in any case) with their new value, null to take a
 * setting out. The whole configuration must be valid with it.
 *
 * @throws ConfigChangeError naming every setting that stands in the way
 */
export function planChange(
  place: ConfigPlace,
  source: ConfigSource,
  set: Readonly<Record<string, unknown>>,
): PlannedChange {
  const before = source.text === undefined || source.text.trim() === '' ? '{}\n' : source.text;
  const layer = parsed(source.file, before);
  const paths = Object.keys(set).map((given) => settingPath(given, source.file));
  const refused = paths.flatMap((path) => ('issue' in path ? [path.issue] : []));
  if (refused.length > 0) throw new ConfigChangeError(refused);
  let text = before;
  let settings = layer.settings;
  for (const [index, path] of paths.entries()) {
    if ('issue' in path) continue;
    const value = Object.values(set)[index];
    text = setMember(text, spelledIn(settings, path.keys), value === null ? undefined : value);
    settings = parsed(source.file, text).settings;
  }
  const user = userLayers(place.home);
  // A change on the page keeps the trust of the file before.
  const present = workspaceLayer(place, layer.settings);
  const layers = [...user, { ...present, settings }];
  const issues = configIssues(layers, place.env);
  if (issues.length > 0) throw new ConfigChangeError(issues);
  const old = effectiveOf([...user, present], place.env);
  const now = effectiveOf(layers, place.env);
  const restartNeededFor = paths.flatMap((path) => {
    if ('issue' in path) return [];
    const keyPath = path.keys.join('.');
    const isSame = JSON.stringify(valueAt(old, path.keys)) === JSON.stringify(valueAt(now, path.keys));
    return isSame || !needsRestart(keyPath) ? [] : [keyPath];
  });
  return { text, restartNeededFor };
}

function parsed(file: string, text: string): Layer {
  try {
    return { file, settings: parseConfig(file, text) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigChangeError([
      { path: '', message: `the file must be ${error.expected}, but is ${error.received}` },
    ]);
  }
}

function effectiveOf(layers: readonly Layer[], env: Environment): unknown {
  try {
    return resolveConfig(layers, env).config;
  } catch (error) {
    // Nothing holds of a configuration that is not valid: every setting of the change is new.
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

type SettingPath = { readonly keys: readonly string[] } | { readonly issue: ConfigIssue };

/** The keys of one setting in the spelling of the schema. */
function settingPath(given: string, file: string): SettingPath {
  const keys: string[] = [];
  let entries = entriesOf(Config);
  const rest = given.split('.');
  while (entries !== undefined) {
    const next = rest.shift() ?? '';
    const key = Object.keys(entries).find((each) => each.toLowerCase() === next.toLowerCase());
    if (key === undefined) return refuse(given, 'there is no such setting');
    keys.push(key);
    entries = entriesOf(entries[key]);
    if (entries !== undefined && rest.length === 0) return refuse(given, 'this is a section: name one of its settings');
  }
  const reason = whyReadOnly(keys.join('.'));
  if (reason !== undefined) return refuse(given, `${file} is not changed here: ${reason}`);
  return rest.length === 0 ? { keys } : refuse(given, 'there is no such setting');
}

const refuse = (path: string, message: string): SettingPath => ({ issue: { path, message } });

/** Returns the keys in the file's spelling; of two that differ in case only, the later one holds. */
function spelledIn(settings: unknown, keys: readonly string[]): string[] {
  const spelled: string[] = [];
  let inside = settings;
  for (const key of keys) {
    const found = isJsonObject(inside)
      ? Object.keys(inside).findLast((each) => each.toLowerCase() === key.toLowerCase())
      : undefined;
    spelled.push(found ?? key);
    inside = isJsonObject(inside) && found !== undefined ? inside[found] : undefined;
  }
  return spelled;
}

function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((inside, key) => (isJsonObject(inside) ? inside[key] : undefined), value);
}
