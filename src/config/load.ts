import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as v from 'valibot';
import { ConfigError } from './error.ts';
import { expand, variablesIn } from './expand.ts';
import { userConfigFile, workspaceConfigFile } from './home.ts';
import { canonical, fileOf, type Layer, listInPlaceOfSection, mergeDeep, pathOf } from './layers.ts';
import { type JsonObject, kindOf, parseConfig } from './parse.ts';
import { Config, secretKeyPaths } from './schema.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface LoadOptions {
  /** The user's home of Oratorio, see `homeDirectory`. */
  readonly home: string;
  /** Root of a workspace, or undefined for the user's settings alone. */
  readonly workspace?: string | undefined;
  readonly env: Environment;
}

export interface LoadedConfig {
  readonly config: Config;
  /** One sentence each, naming file and key; nothing of it stops the program. */
  readonly warnings: readonly string[];
  /** Environment variables that the settings in force refer to. */
  readonly referencedVariables: readonly string[];
  /** The files that exist, in the order in which they were laid over each other. */
  readonly files: readonly string[];
}

/**
 * Reads `<home>/config.json` and then `<workspace>/.oratorio/config.json`, lays the second over the first, expands
 * `${VARIABLES}` and validates the whole (DESIGN §1). A file that is not there is an empty one.
 *
 * @throws ConfigError for a file that cannot be read or parsed, a variable that is not set, a value that is not allowed
 */
export function loadConfig({ home, workspace, env }: LoadOptions): LoadedConfig {
  const user = userConfigFile(home);
  const files = workspace === undefined ? [user] : [user, workspaceConfigFile(workspace)];
  const different = files.filter(
    (file, index) => files.findIndex((other) => resolve(other) === resolve(file)) === index,
  );
  return resolveConfig(
    different.map((file, index) => readLayer(file, index > 0)).filter((layer) => layer !== undefined),
    env,
  );
}

/** The names of all environment variables that these files refer to. Files that cannot be read or parsed refer to none. */
export function referencedVariables(files: readonly string[]): string[] {
  return [...new Set(files.flatMap((file) => variablesIn(readableLayer(file)?.settings)))];
}

function readableLayer(file: string): Layer | undefined {
  try {
    return readLayer(file, false);
  } catch {
    // Whoever needs the settings of this file is told what is wrong with it; it names no variable.
    return undefined;
  }
}

/** Two small files, read at starts only: blocking for them is simpler than everything that would have to wait. */
function readLayer(file: string, isOfWorkspace: boolean): Layer | undefined {
  try {
    return { file, settings: parseConfig(file, readFileSync(file, 'utf8')), isOfWorkspace };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new ConfigError({ file, keyPath: '', expected: 'a readable file', received: `not readable (${code})` });
  }
}

/** As `loadConfig`, for layers that are read already, the weakest first. */
export function resolveConfig(layers: readonly Layer[], env: Environment): LoadedConfig {
  const { canonicalLayers, merged, expanded, warnings } = mergeLayers(layers, env);
  const checked = v.safeParse(Config, expanded, { abortEarly: true });
  if (!checked.success) throw problemOf(checked.issues[0], canonicalLayers, merged);
  const files = layers.map(({ file }) => file);
  return { config: checked.output, warnings, referencedVariables: variablesIn(merged), files };
}

/** Everything that makes these layers no valid configuration: key paths, and what each must be. Never a value. */
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

/** @throws ConfigError for a list in place of a section, and for a variable that is not set */
function mergeLayers(layers: readonly Layer[], env: Environment) {
  const warnings: string[] = [];
  const canonicalLayers = layers.map((layer) => canonical(layer, (warning) => warnings.push(warning)));
  const merged = canonicalLayers.reduce<JsonObject>((under, { settings }) => mergeDeep(under, settings), {});
  const list = listInPlaceOfSection(merged);
  if (list) {
    const file = fileOf(canonicalLayers, list);
    throw new ConfigError({ file, keyPath: list.join('.'), expected: 'an object', received: 'a list' });
  }
  const expanded = expand(merged, env, (name, path) => {
    throw new ConfigError({
      file: fileOf(canonicalLayers, path),
      keyPath: path.join('.'),
      expected: `a string whose variables are set`,
      received: `a reference to the environment variable ${name}, which is not set`,
    });
  });
  return { canonicalLayers, merged, expanded, warnings };
}

const expectedBy = ({ message }: v.BaseIssue<unknown>): string =>
  message.startsWith('Invalid type') ? 'an object' : message;

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
  const quoted = typeof value === 'object' && value !== null ? kindOf(value) : JSON.stringify(value);
  return quoted === undefined || quoted.length > longestQuote ? kindOf(value) : quoted;
}
