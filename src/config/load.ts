import { randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { FileRefusedError, lineOf, readBoundedFile, withoutUserInfo } from '../lib/index.ts';
import { admit } from './admit.ts';
import { ConfigError } from './error.ts';
import { expand, findText, variablesIn } from './expand.ts';
import { userConfigFile, workspaceConfigFile } from './home.ts';
import { canonical, fileOf, type Layer, listInPlaceOfSection, mergeDeep, pathOf, type Trust } from './layers.ts';
import { isJsonObject, type JsonObject, kindOf, parseConfig } from './parse.ts';
import { readUserSettings, readWorkspaceSettings, readWorkspaceText } from './read-layer.ts';
import { restrictedLayer } from './restricted.ts';
import { Config, secretKeyPaths } from './schema.ts';
import { valueAt as settingAt } from './settings-table.ts';
import { quotedPath } from './shell-path.ts';
import { isUsersFile, type TrustPlace, trustOf } from './trust.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface LoadOptions {
  /** The user's home of Oratorio, see `homeDirectory`. */
  readonly home: string;
  /** Root of a workspace, or undefined for the user's settings alone. */
  readonly workspace?: string | undefined;
  readonly env: Environment;
  /** See `TrustPlace`. */
  readonly decided?: TrustPlace['decided'];
}

export interface LoadedConfig {
  readonly config: Config;
  /** One sentence each, naming file and key; nothing of it stops the program. */
  readonly warnings: readonly string[];
  /** Environment variables that the settings of the files refer to. */
  readonly referencedVariables: readonly string[];
  /** The files that exist, in the order in which they were laid over each other. */
  readonly files: readonly string[];
  /** Whether sensitive settings of the workspace's file apply; the user's own file is always trusted. */
  readonly trust: Trust;
  /** Sensitive settings of the workspace's file that are ignored, e.g. `EndPoint`, `Tools.Shell`. */
  readonly restrictedSettings: readonly string[];
  /** `SystemPrompt` of a restricted workspace: for the model, marked as untrusted; else empty. */
  readonly untrustedPrompt: string;
  /** Settings that apply, by file, the weaker file first: keys as the schema spells them, variables not expanded. */
  readonly layers: readonly Pick<Layer, 'file' | 'settings'>[];
}

/**
 * Reads `<home>/config.json` and then `<workspace>/.oratorio/config.json`, expands `${VARIABLES}`, lays the second over the
 * first and validates the whole (design §1). A missing file is an empty one. Sensitive settings of a restricted workspace
 * are ignored; a trusted one never weakens the user's protections, and no credential meets an address of the other file
 * (design §9). The workspace's file sees only variables that `Supervision.PassEnvironment` of the user's lists.
 *
 * @throws ConfigError for a file that cannot be read or parsed, a variable that is not set, an invalid value
 */
export function loadConfig({ home, workspace, env, decided }: LoadOptions): LoadedConfig {
  const user = userLayers(home);
  if (workspace === undefined || isUsersFile({ home, workspace })) return resolveConfig(user, env);
  const settings = readWorkspaceSettings(workspace);
  const own = workspaceLayer({ home, workspace, decided }, settings ?? {});
  const loaded = resolveConfig([...user, own], env);
  return settings === undefined ? { ...loaded, files: user.map(({ file }) => file) } : loaded;
}

/**
 * Settings that can be used: without those of the workspace while they are unusable, and the defaults while the user's are too. The
 * user's secrets stay known, so that they stay hidden.
 */
export function usableConfig({ workspace, ...user }: LoadOptions): Config {
  for (const options of [{ ...user, workspace }, user]) {
    try {
      return loadConfig(options).config;
    } catch {
      // A start of the workspace reports the fault.
    }
  }
  return v.parse(Config, {});
}

/** Reads the user's file; empty for a missing one. @throws ConfigError */
export function userLayers(home: string): Layer[] {
  const settings = readUserSettings(home);
  return settings === undefined ? [] : [{ file: userConfigFile(home), settings }];
}

/** Settings of a workspace's file, with the trust that the user gave them. */
export function workspaceLayer(place: TrustPlace, settings: JsonObject): Layer {
  const file = workspaceConfigFile(place.workspace);
  if (isUsersFile(place)) return { file, settings };
  const { trust, warning } = trustOf(place, canonical({ file, settings }, () => undefined).settings);
  return { file, settings, workspace: { path: place.workspace, trust, warning } };
}

/**
 * Checks the settings of a workspace's file as they apply once it is trusted. The user's own file and variables that are not set
 * are left to the start, because the environment of the Hub may differ.
 *
 * @throws ConfigError with file, line and key
 */
export function requireValid({ home, workspace, env }: TrustPlace & { readonly env: Environment }): void {
  const file = workspaceConfigFile(workspace);
  const text = readWorkspaceText(workspace);
  if (text === undefined) return;
  const origin = { path: workspace, trust: 'trusted' } as const;
  try {
    resolveConfig([...userLayers(home), { file, settings: parseConfig(file, text), workspace: origin }], env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (error.file !== file || error.expected === setVariables) return;
    if (error.keyPath === '') throw error;
    throw new ConfigError({ ...error, line: lineOf(text, error.keyPath.split('.')) }, { cause: error });
  }
}

const setVariables = 'a string whose variables are set';

/** Names of all environment variables that these files refer to. Files that cannot be read or parsed refer to none. */
export function referencedVariables(files: readonly string[]): string[] {
  return [...new Set(files.flatMap((file) => variablesIn(readableSettings(file))))];
}

function readableSettings(file: string): JsonObject | undefined {
  try {
    const text = readBoundedFile(file, { owner: 'any', links: 'follow' });
    return text === undefined ? undefined : parseConfig(file, text);
  } catch (error) {
    // The later load of these settings reports the fault; an unreadable file names no variable.
    if (error instanceof ConfigError || error instanceof FileRefusedError) return undefined;
    throw error;
  }
}

/** Merges and validates layers that are read already, the weakest first. Throws like `loadConfig`. */
export function resolveConfig(layers: readonly Layer[], env: Environment): LoadedConfig {
  const { attributed, merged, expanded, warnings, trust, restrictedSettings, untrustedPrompt } = mergeLayers(
    layers,
    env,
  );
  const checked = v.safeParse(Config, expanded, { abortEarly: true });
  if (!checked.success) throw problemOf(checked.issues[0], attributed, merged);
  const files = layers.map(({ file }) => file);
  const names = variablesIn(attributed.map(({ settings }) => settings));
  const applicable = attributed.map(({ file, settings }) => ({ file, settings }));
  return {
    config: checked.output,
    warnings,
    referencedVariables: names,
    files,
    trust,
    restrictedSettings,
    untrustedPrompt,
    layers: applicable,
  };
}

/** Problems that make these layers an invalid configuration: key paths, each with its expected value. Never a found value. */
export function configIssues(layers: readonly Layer[], env: Environment): { path: string; message: string }[] {
  try {
    const { expanded } = mergeLayers(layers, env);
    const { issues = [] } = v.safeParse(Config, expanded);
    return issues.map((issue) => ({ path: pathOf(issue).join('.'), message: `must be ${expectedBy(issue)}` }));
  } catch (error) {
    if (error instanceof ConfigError) return [{ path: error.keyPath, message: `must be ${error.expected}` }];
    throw error;
  }
}

interface MergedLayers {
  /** Applicable settings of each file, unexpanded, with the file's name for messages. */
  readonly attributed: readonly Layer[];
  readonly merged: JsonObject;
  readonly expanded: JsonObject;
  readonly warnings: readonly string[];
  readonly trust: Trust;
  readonly restrictedSettings: readonly string[];
  readonly untrustedPrompt: string;
}

/** @throws ConfigError for a list in place of a section, and for a variable that is not set */
function mergeLayers(layers: readonly Layer[], env: Environment): MergedLayers {
  const warnings: string[] = [];
  const warn = (warning: string) => warnings.push(warning);
  const spelled = layers.map((layer) => canonical(layer, warn));
  const own = spelled.filter(({ workspace }) => workspace === undefined);
  const user = own.reduce<JsonObject>((under, { settings }) => mergeDeep(under, settings), {});
  const placeholders = new Placeholders();
  const userExpanded = placeholders.expand(user, env, (name, path) => ({
    file: fileOf(own, path),
    received: `a reference to the environment variable ${name}, which is not set`,
  }));
  const layer = spelled.find(({ workspace }) => workspace !== undefined);
  if (layer === undefined || layer.workspace === undefined) {
    const merged = checkedSections(user, own);
    return {
      attributed: own,
      merged,
      expanded: placeholders.checked(userExpanded),
      warnings,
      trust: 'trusted',
      restrictedSettings: [],
      untrustedPrompt: '',
    };
  }
  const { trust, path, warning } = layer.workspace;
  const isRestricted = trust === 'restricted';
  const restricted = isRestricted ? restrictedLayer(layer.settings, userExpanded) : undefined;
  const restrictedSettings = restricted?.ignored ?? [];
  if (restrictedSettings.length > 0) warn(restrictionWarning(path, restrictedSettings));
  if (warning !== undefined) warn(warning);
  const workspace = restricted?.settings ?? layer.settings;
  const passEnvironment = namesIn(settingAt(userExpanded, 'Supervision.PassEnvironment'));
  const options = { workspaceFile: layer.file, passEnvironment };
  const raw = admit({ ...options, user, workspace, warn: () => undefined });
  const attributed = [
    { file: own[0]?.file ?? layer.file, settings: raw.user },
    { ...layer, settings: raw.workspace },
  ];
  const merged = checkedSections(mergeDeep(raw.user, raw.workspace), attributed);
  const workspaceExpanded = placeholders.expand(
    workspace,
    Object.fromEntries(passEnvironment.map((name) => [name, env[name]])),
    (name) => ({
      file: layer.file,
      received: `a reference to the environment variable ${name}, which ${
        passEnvironment.includes(name)
          ? 'is not set'
          : 'Supervision.PassEnvironment of your own config.json does not list'
      }`,
    }),
  );
  const admitted = admit({ ...options, user: userExpanded, workspace: workspaceExpanded, warn });
  const expanded = placeholders.checked(mergeDeep(admitted.user, admitted.workspace));
  const untrustedPrompt = restricted?.untrustedPrompt ?? '';
  return { attributed, merged, expanded, warnings, trust, restrictedSettings, untrustedPrompt };
}

/** One line for a person: the ignored settings, and how to allow them. */
export const restrictionWarning = (workspace: string, restrictedSettings: readonly string[]): string =>
  `${workspace} is restricted: ${restrictedSettings.join(', ')} of its config.json ${
    restrictedSettings.length === 1 ? 'is' : 'are'
  } ignored. To review and allow: oratorio trust ${quotedPath(workspace)}`;

const namesIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : [];

/** @throws ConfigError for a list in place of a section */
function checkedSections(merged: JsonObject, layers: readonly Layer[]): JsonObject {
  const list = listInPlaceOfSection(merged);
  if (list === undefined) return merged;
  throw new ConfigError({
    file: fileOf(layers, list),
    keyPath: list.join('.'),
    expected: 'an object',
    received: 'a list',
  });
}

interface MissingVariable {
  readonly file: string;
  readonly keyPath: string;
  readonly received: string;
}

/** Placeholders of missing variables, until it is known whether their setting holds: a covered one is not a problem. */
class Placeholders {
  readonly #mark = `\0${randomBytes(12).toString('hex')}:`;
  readonly #missing: MissingVariable[] = [];

  expand(
    settings: JsonObject,
    env: Environment,
    problem: (name: string, path: readonly (string | number)[]) => Pick<MissingVariable, 'file' | 'received'>,
  ): JsonObject {
    const expanded = expand(settings, env, (name, path) => {
      this.#missing.push({ ...problem(name, path), keyPath: path.join('.') });
      return `${this.#mark}${this.#missing.length - 1};`;
    });
    return isJsonObject(expanded) ? expanded : {};
  }

  /** @throws ConfigError when a placeholder is left */
  checked(settings: JsonObject): JsonObject {
    const text = findText(settings, (each) => each.includes(this.#mark));
    if (text === undefined) return settings;
    const missing = this.#missing[Number.parseInt(text.slice(text.indexOf(this.#mark) + this.#mark.length), 10)];
    if (missing === undefined) return settings;
    throw new ConfigError({ ...missing, expected: setVariables });
  }
}

/** Expected values in words, by the type of a schema that has no words of its own. */
const expectedWords: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  non_empty: 'not empty',
  number: 'a number',
  object: 'an object',
  record: 'an object',
  string: 'a string',
};

function expectedBy({ message, type, expected }: v.BaseIssue<unknown>): string {
  if (message.startsWith('Invalid key')) return 'set';
  if (!message.startsWith('Invalid ')) return message;
  return expectedWords[type] ?? expected ?? 'another value';
}

function problemOf(issue: v.BaseIssue<unknown>, layers: readonly Layer[], merged: JsonObject): ConfigError {
  const path = pathOf(issue);
  const keyPath = path.join('.');
  const isPrivate = secretKeyPaths.has(keyPath) || variablesIn(valueAt(merged, path)).length > 0;
  return new ConfigError({
    file: fileOf(layers, path),
    keyPath,
    expected: expectedBy(issue),
    received: isPrivate ? `${kindOf(issue.input)} that is not shown` : describe(issue.input),
  });
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inside, key) => (inside as Record<string | number, unknown> | undefined)?.[key], value);
}

const longestQuote = 100;

/** The value as JSON when it is short, its kind when it is not. */
function describe(value: unknown): string {
  const shown = typeof value === 'string' ? withoutUserInfo(value) : value;
  const quoted = typeof shown === 'object' && shown !== null ? kindOf(shown) : JSON.stringify(shown);
  return quoted === undefined || quoted.length > longestQuote ? kindOf(value) : quoted;
}
