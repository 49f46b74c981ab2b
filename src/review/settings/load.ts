import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import { canonical } from './canonical.ts';
import { type Environment, environmentLayer } from './environment.ts';
import { butIs, SettingsError, type SettingsProblem } from './error.ts';
import { isJsonObject, type JsonObject, valueAt, withValue } from './json.ts';
import { configuredRepositories, instanceOf, isFullName, projectKey } from './repositories.ts';
import { BackendSettings } from './schema.ts';
import { readSecretFiles } from './secret-files.ts';

export interface SettingsPlace {
  /** `oratorio.config.json`; a missing file counts as empty. */
  readonly file: string;
  readonly env: Environment;
  /** Variables that an option of the command line has set, with the option's name; the environment has them, too. */
  readonly options?: ReadonlyMap<string, string>;
  /** State directory of the backend; without a settings file, relative paths of secret files begin here. */
  readonly stateRoot: string;
}

export interface LoadedSettings {
  readonly settings: BackendSettings;
  readonly warnings: readonly string[];
  /** Hash of the file's text. */
  readonly revision: string;
  /** Hash of all settings, from every source. Never show it: secrets are part of it. */
  readonly fingerprint: string;
  readonly hasFile: boolean;
  /** Files besides the configuration that settings were read from. */
  readonly secretFiles: readonly string[];
  /** Settings that the environment or an option overrides, by path, with the name of the variable or the option. */
  readonly fromEnvironment: ReadonlyMap<string, string>;
}

/** Returns the text of the file, or undefined when it is missing. @throws SettingsError when it cannot be read */
export function readSettingsFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new SettingsError([{ source: file, keyPath: '', expected: `a readable file (${code})` }]);
  }
}

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22);

/**
 * Reads the settings of the review backend: defaults, under the file, under the environment, with secrets from the files that
 * are named.
 *
 * @throws SettingsError naming every source and key with an invalid setting
 */
export function loadSettings(place: SettingsPlace): LoadedSettings {
  return settingsOf(place, readSettingsFile(place.file));
}

/** Like `loadSettings`, with the text of the file already known. */
export function settingsOf({ file, env, stateRoot, options }: SettingsPlace, text: string | undefined): LoadedSettings {
  const fromFile = canonical(file, rootOf(file, text));
  const fromEnv = environmentLayer(env, fromFile.settings);
  const named = new Map([...fromFile.secretFiles, ...fromEnv.secretFiles]);
  const keyPath = valueAt(fromEnv.settings, ['GitHub', 'PrivateKeyPath']);
  if (typeof keyPath === 'string' && keyPath !== '') named.set('GitHub.PrivateKey', keyPath);
  const directory = text === undefined ? stateRoot : dirname(resolve(file));
  const withSecrets = readSecretFiles(fromEnv.settings, named, directory);
  const early = [...fromFile.problems, ...fromEnv.problems, ...withSecrets.problems];
  if (early.length > 0) throw new SettingsError(early);
  const settings = checked(file, withLineBreaks(withSecrets.settings), fromEnv.names);
  return {
    settings,
    warnings: [...fromFile.warnings, ...fromEnv.warnings, ...withSecrets.warnings, ...doubts(settings)],
    revision: hashOf(text ?? ''),
    fingerprint: hashOf(JSON.stringify(settings)),
    hasFile: text !== undefined,
    secretFiles: withSecrets.files,
    fromEnvironment: new Map([...fromEnv.names].map(([path, name]) => [path, options?.get(name) ?? name])),
  };
}

/** The object `Oratorio` of the file, in any case. @throws SettingsError */
export function rootOf(file: string, text: string | undefined): JsonObject {
  if (text === undefined || text.trim() === '') return {};
  const document = parsed(file, text);
  if (!isJsonObject(document))
    throw new SettingsError([{ source: file, keyPath: '', expected: butIs('a JSON object', document) }]);
  const key = rootKey(document);
  const root = key === undefined ? {} : document[key];
  if (isJsonObject(root)) return root;
  throw new SettingsError([{ source: file, keyPath: 'Oratorio', expected: butIs('an object', root) }]);
}

/** Spelling of `Oratorio` in this file; of two spellings the later one counts. */
export const rootKey = (document: JsonObject): string | undefined =>
  Object.keys(document).findLast((key) => key.toLowerCase() === 'oratorio');

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    // The parser's message quotes the text, which may hold a secret: only the place is taken from it.
    const place = /line \d+ column \d+/.exec(error instanceof Error ? error.message : '')?.[0];
    const expected = `JSON without comments${place === undefined ? '' : `, and is not at ${place}`}`;
    throw new SettingsError([{ source: file, keyPath: '', expected }]);
  }
}

/** A key from the environment is often one line, with `\n` for its line breaks. */
function withLineBreaks(settings: JsonObject): JsonObject {
  const path = ['GitHub', 'PrivateKey'];
  const key = valueAt(settings, path);
  return typeof key === 'string' ? withValue(settings, path, key.replaceAll('\\n', '\n')) : settings;
}

function checked(file: string, given: JsonObject, names: ReadonlyMap<string, string>): BackendSettings {
  const result = v.safeParse(BackendSettings, given);
  const sourceOf = (keyPath: string) => {
    const name = names.get(keyPath);
    return name === undefined ? file : `environment variable ${name}`;
  };
  if (!result.success) {
    throw new SettingsError(
      result.issues.map((issue) => {
        const keyPath = v.getDotPath(issue) ?? '';
        return {
          source: sourceOf(keyPath),
          keyPath,
          expected: butIs(wanted(issue), valueAt(given, keyPath.split('.'))),
        };
      }),
    );
  }
  const problems = misnamed(result.output).map(
    (problem): SettingsProblem => ({ source: sourceOf(problem.keyPath), ...problem }),
  );
  if (problems.length > 0) throw new SettingsError(problems);
  return result.output;
}

/** Expected value by the schema; valibot's own messages quote the received one. */
const wanted = (issue: v.BaseIssue<unknown>): string =>
  issue.message.startsWith('Invalid ') ? (issue.expected ?? 'of another kind') : issue.message;

/** Finds invalid names of repositories. */
function misnamed(settings: BackendSettings): Omit<SettingsProblem, 'source'>[] {
  const instance = instanceOf(settings.GitHub.Endpoint);
  const isProject = (text: string) => projectKey(instance, text) !== undefined;
  const lists = [
    ['GitHub.Repositories', settings.GitHub.Repositories, isFullName],
    [
      'AgentServer.RepositoryWorkspaceRoutes',
      settings.AgentServer.RepositoryWorkspaceRoutes.map(({ Project }) => Project),
      isProject,
    ],
  ] as const;
  return lists.flatMap(([path, names, isRight]) =>
    names.flatMap((name, index) =>
      isRight(name) ? [] : [{ keyPath: `${path}.${index}`, expected: 'a repository such as owner/name' }],
    ),
  );
}

/** Finds settings that are valid and probably a mistake. */
function doubts(settings: BackendSettings): string[] {
  const { GitHub, Automation } = settings;
  const instance = instanceOf(GitHub.Endpoint);
  const repositories = configuredRepositories(settings);
  const known = new Set<string | undefined>(repositories.map(({ repositoryKey }) => repositoryKey));
  const hasKey = GitHub.AppId !== undefined && GitHub.PrivateKey !== '';
  const unlisted = Automation.AutoReviewRepositories.filter(
    (name) => name !== '*' && !known.has(projectKey(instance, name)),
  );
  return [
    ...unlisted.map((name) => `Automation.AutoReviewRepositories: ${name} is not in GitHub.Repositories`),
    ...repositories
      .filter(({ workspacePath }) => workspacePath === undefined)
      .map(({ repositoryKey }) => `${repositoryKey} has no workspace route: it cannot be reviewed`),
    ...(repositories.length > 0 && !hasKey
      ? ['GitHub.AppId or its private key is missing: GitHub cannot be asked']
      : []),
    ...(GitHub.WebhookSecret === '' ? ['GitHub.WebhookSecret is missing: the webhook answers 503'] : []),
    ...(Automation.AutoReviewPublishEnabled && !GitHub.WritesEnabled
      ? ['Automation.AutoReviewPublishEnabled has no effect while GitHub.WritesEnabled is off']
      : []),
  ];
}
