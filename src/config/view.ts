import { maskedAddress } from '../lib/index.ts';
import { placeWords } from '../protocol/index.ts';
import { ConfigChangeError, type ConfigPlace, workspaceSource } from './change.ts';
import { ConfigError } from './error.ts';
import { workspaceConfigFile } from './home.ts';
import { canonical, type Layer } from './layers.ts';
import { resolveConfig, userLayers, workspaceLayer } from './load.ts';
import { isJsonObject, type JsonObject, parseConfig } from './parse.ts';
import { secretKeyPaths } from './schema.ts';
import { lineIn } from './setting-places.ts';
import { settingsTable, valueAt } from './settings-table.ts';

/** A configuration for display: of a secret it holds only whether it is set. */
export interface ShownConfig {
  /** Revision of the workspace's own file, see `ConfigSource`. */
  readonly revision: string;
  /** Path of the workspace's own file. */
  readonly path: string;
  /** Effective settings: both files and the defaults. Empty when they do not make a valid configuration. */
  readonly effective: JsonObject;
  readonly workspace: JsonObject;
  readonly user: JsonObject;
  readonly warnings: readonly string[];
  /** `file:line` of each set value that a form does not change, by key path. */
  readonly places: Readonly<Record<string, string>>;
  /** Why the workspace's file cannot be changed by a form: it is no JSON object. */
  readonly problem: string | undefined;
}

/** Current content of the files of a workspace, which may differ from the settings that a server was started with. */
export function showConfig(place: ConfigPlace): ShownConfig {
  const file = workspaceConfigFile(place.workspace);
  const source = attempt(() => workspaceSource(place.workspace));
  const own = attempt(() => layersOf(place, source.value?.text));
  const user = attempt(() => userLayers(place.home));
  const whole = attempt(() => resolveConfig([...(user.value ?? []), ...(own.value ?? [])], place.env));
  const problems = [source, own, user, whole].flatMap(({ problem }) => (problem === undefined ? [] : [problem]));
  return {
    revision: source.value?.revision ?? '',
    path: file,
    effective: withoutSecrets((whole.value?.config ?? {}) as JsonObject),
    workspace: withoutSecrets(settingsOf(own.value)),
    user: withoutSecrets(settingsOf(user.value)),
    warnings: [...new Set([...problems, ...(whole.value?.warnings ?? [])])],
    places: placesOf([...(user.value ?? []), ...(own.value ?? [])]),
    problem: source.problem ?? own.problem,
  };
}

/** The stronger layer comes last, and decides. */
const placesOf = (layers: readonly Layer[]): Record<string, string> =>
  Object.fromEntries(
    layers.flatMap(({ file, settings }) =>
      settingsTable
        .filter(({ path }) => valueAt(settings, path) !== undefined)
        .map(({ path }) => [path, placeWords({ file, line: lineIn(file, path.split('.')) })] as const),
    ),
  );

const layersOf = (place: ConfigPlace, text: string | undefined): Layer[] =>
  text === undefined ? [] : [workspaceLayer(place, parseConfig(workspaceConfigFile(place.workspace), text))];

function attempt<T>(work: () => T): { readonly value?: T; readonly problem?: string } {
  try {
    return { value: work() };
  } catch (error) {
    if (error instanceof ConfigError || error instanceof ConfigChangeError) return { problem: error.message };
    throw error;
  }
}

/** Settings with keys in the schema's spelling, so that a form finds its values; unknown keys stay unchanged. */
function settingsOf(layers: readonly Layer[] | undefined): JsonObject {
  const [layer] = layers ?? [];
  return layer === undefined ? {} : canonical(layer, () => undefined).settings;
}

/** Tables whose values are all secret. */
const secretTables: ReadonlySet<string> = new Set(['Agent.Env', 'Telemetry.Headers']);
/** Fields of an MCP server that may be shown: arguments, variables and headers hold keys. */
const shownOfServer: ReadonlySet<string> = new Set([
  'transport',
  'command',
  'url',
  'enabled',
  'trusted',
  'startupTimeoutSec',
  'toolTimeoutSec',
]);

/** `{set: true}` stands for a secret, `{set: false}` for an empty one; addresses lose their credentials. */
export function withoutSecrets(settings: JsonObject): JsonObject {
  return copied(settings, '') as JsonObject;
}

function copied(value: unknown, path: string): unknown {
  if (secretKeyPaths.has(path)) return { set: value !== '' && value !== null };
  if (typeof value === 'string') return maskedAddress(value).replace(/^([a-z][a-z\d+.-]*:\/[^?#]*)\?[^#]*/i, '$1?…');
  if (Array.isArray(value)) return value.map((each) => copied(each, `${path}[]`));
  if (!isJsonObject(value)) return value;
  if (path === 'McpServers') return mapValues(value, serverOf);
  if (path === 'Providers') return mapValues(value, providerOf);
  if (secretTables.has(path)) return mapValues(value, () => ({ set: true }));
  return mapValues(value, (each, key) => copied(each, path === '' ? key : `${path}.${key}`));
}

function serverOf(server: unknown): unknown {
  if (!isJsonObject(server)) return { set: true };
  return mapValues(server, (each, key) => {
    if (shownOfServer.has(key)) return copied(each, '[]');
    return { set: true };
  });
}

function providerOf(provider: unknown): unknown {
  if (!isJsonObject(provider)) return { set: true };
  return mapValues(provider, (each, key) => {
    if (key === 'Headers' && isJsonObject(each)) return mapValues(each, () => ({ set: true }));
    return key === 'Kind' || key === 'EndPoint' ? copied(each, '[]') : { set: each !== '' && each !== null };
  });
}

function mapValues(object: JsonObject, change: (value: unknown, key: string) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}
