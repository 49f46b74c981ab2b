import * as v from 'valibot';
import { isUsersAlone } from './combine.ts';
import { ConfigError } from './error.ts';
import { mergeDeep } from './layers.ts';
import { isJsonObject, type JsonObject } from './parse.ts';
import { Config } from './schema.ts';
import { boundCredentials, settingsTable, valueAt, wholeEntries, withValue } from './settings-table.ts';

export interface AdmitOptions {
  readonly user: JsonObject;
  /** Settings of the workspace's file that its trust allows. */
  readonly workspace: JsonObject;
  readonly workspaceFile: string;
  /** Names of the environment variables that a workspace may use. */
  readonly passEnvironment: readonly string[];
  readonly warn: (warning: string) => void;
}

/** Two layers that can be merged: neither weakens a protection of the user, nor sends a credential to a foreign address. */
export interface Admitted {
  readonly user: JsonObject;
  readonly workspace: JsonObject;
}

/**
 * Removes from both layers the values that must not meet in one configuration: values of the workspace that are weaker than the
 * user's, and credentials whose address comes from the other layer.
 *
 * @throws ConfigError when the two cannot hold together
 */
export function admit(options: AdmitOptions): Admitted {
  const workspace = withServerVariables(withoutWeakerValues(options), options);
  return withBoundCredentials(options.user, workspace, options);
}

let knownDefaults: Config | undefined;

function withoutWeakerValues({ user, workspace, workspaceFile, warn }: AdmitOptions): JsonObject {
  let admitted = workspace;
  for (const { path, combine } of settingsTable) {
    const given = valueAt(workspace, path);
    if (combine === undefined || given === undefined) continue;
    knownDefaults ??= v.parse(Config, {});
    const value = combine({
      user: valueAt(user, path),
      workspace: given,
      fallback: valueAt(knownDefaults, path),
      userAt: (other) => valueAt(user, other),
      workspaceAt: (other) => valueAt(workspace, other),
      refuse(expected, received) {
        throw new ConfigError({ file: workspaceFile, keyPath: path, expected, received });
      },
    });
    if (value === given) continue;
    admitted = withValue(admitted, path, value === valueAt(user, path) ? undefined : value);
    if (combine === isUsersAlone)
      warn(`${workspaceFile}: ${path} is not read here; only your own config.json decides it`);
    else if (!holdsAll(value, given)) {
      warn(`${workspaceFile}: ${path} does not hold as written, because your own configuration is stricter`);
    }
  }
  return admitted;
}

/** Whether a combined list still has everything that the workspace asks for. */
const holdsAll = (value: unknown, given: unknown): boolean =>
  Array.isArray(value) && Array.isArray(given) && given.every((each) => value.includes(each));

/** Keys of an MCP server's settings that name environment variables. */
const variableKeys = ['bearerTokenEnvVar', 'envVars', 'envHttpHeaders'] as const;

/** MCP servers of a workspace are handed only the variables that the workspace may see. */
function withServerVariables(
  workspace: JsonObject,
  { passEnvironment, workspaceFile, warn }: AdmitOptions,
): JsonObject {
  const servers = valueAt(workspace, 'McpServers');
  if (!isJsonObject(servers)) return workspace;
  const passed = new Set<unknown>(passEnvironment);
  const admitted = Object.entries(servers).map(([name, server]) => {
    if (!isJsonObject(server)) return [name, server];
    const entries = Object.entries(server).flatMap(([key, value]) => {
      if (!variableKeys.some((each) => each === key)) return [[key, value]];
      const kept = onlyPassed(value, passed);
      if (kept === value) return [[key, value]];
      warn(
        `${workspaceFile}: McpServers.${name}.${key} names variables that Supervision.PassEnvironment of your own config.json does not list; they are not handed on`,
      );
      return kept === undefined ? [] : [[key, kept]];
    });
    return [name, Object.fromEntries(entries)];
  });
  return withValue(workspace, 'McpServers', Object.fromEntries(admitted));
}

/** `value` itself when every variable it names is passed on. */
function onlyPassed(value: unknown, passed: ReadonlySet<unknown>): unknown {
  if (typeof value === 'string') return passed.has(value) ? value : undefined;
  if (Array.isArray(value)) {
    const kept = value.filter((name) => passed.has(name));
    return kept.length === value.length ? value : kept;
  }
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value);
  const kept = entries.filter(([, name]) => passed.has(name));
  return kept.length === entries.length ? value : Object.fromEntries(kept);
}

function withBoundCredentials(given: JsonObject, own: JsonObject, { workspaceFile, warn }: AdmitOptions): Admitted {
  let [user, workspace] = [given, own];
  for (const { credential, addresses } of boundCredentials) {
    const [mine, theirs] = [valueAt(user, credential), valueAt(workspace, credential)];
    const redirected = addresses.filter((path) => valueAt(workspace, path) !== undefined);
    const usersAddress = addresses.filter((path) => isSet(valueAt(user, path)));
    if (redirected.length > 0) {
      user = withValue(user, credential, undefined);
      // The workspace's key goes to the workspace's address, not to one that is half the user's.
      if (isSet(theirs)) user = addresses.reduce((left, path) => withValue(left, path, undefined), user);
      else if (isSet(mine)) {
        warn(
          `${workspaceFile}: sets ${redirected.join(' and ')}, so ${credential} of your own config.json is not sent there`,
        );
      }
    } else if (usersAddress.length > 0 && theirs !== undefined) {
      workspace = withValue(workspace, credential, undefined);
      const reason = `${usersAddress.join(' and ')} of your own config.json would receive it`;
      warn(`${workspaceFile}: ${credential} is not used: ${reason}. Set both in one file.`);
    }
  }
  for (const section of wholeEntries) user = withoutEntries(user, workspace, section);
  return { user, workspace };
}

const isSet = (value: unknown): boolean => value !== undefined && value !== '' && value !== 'none';

/** Two definitions of one name are never merged: one's address would meet the other's credentials. */
function withoutEntries(user: JsonObject, workspace: JsonObject, section: string): JsonObject {
  const [mine, theirs] = [valueAt(user, section), valueAt(workspace, section)];
  if (!isJsonObject(mine) || !isJsonObject(theirs)) return user;
  const left = Object.entries(mine).filter(([name]) => !Object.hasOwn(theirs, name));
  return withValue(user, section, Object.fromEntries(left));
}

/** Merges two admitted layers. */
export const mergeAdmitted = ({ user, workspace }: Admitted): JsonObject => mergeDeep(user, workspace);
