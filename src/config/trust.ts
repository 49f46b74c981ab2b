import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { realPathOr } from '../lib/index.ts';
import { type AgreementChanges, agreementTo, changesSince } from './agreement.ts';
import { forgetEditorServers } from './editor-servers.ts';
import { ConfigError, TrustError } from './error.ts';
import { directoryName, userConfigFile, workspaceConfigFile } from './home.ts';
import { canonical, type Trust } from './layers.ts';
import { changedFiles, type NamedFiles, namedFiles } from './named-files.ts';
import { isJsonObject, type JsonObject } from './parse.ts';
import { lstatOf, readWorkspaceSettings } from './read-layer.ts';
import { restrictedLayer } from './restricted.ts';
import { sensitiveSettings } from './settings-table.ts';
import { changeTrustFile, type ReadTrust, readTrustFile } from './trust-file.ts';

export interface TrustPlace {
  /** The user's home of Oratorio, see `homeDirectory`. */
  readonly home: string;
  /** Root of the workspace. */
  readonly workspace: string;
  /** Decisions that the caller has read already; absent: they are read from the home. */
  readonly decided?: ReadTrust | undefined;
}

/** Whether the workspace's file is the user's own: it is read as such. */
export const isUsersFile = ({ home, workspace }: TrustPlace): boolean =>
  resolve(workspaceConfigFile(workspace)) === resolve(userConfigFile(home));

export interface WorkspaceTrust {
  readonly trust: Trust;
  /** Sensitive settings of the workspace's file that are ignored, e.g. `EndPoint`, `Tools.Shell`. Empty when trusted. */
  readonly restrictedSettings: readonly string[];
}

/** A trusted workspace, as `trust.json` has it. */
export interface TrustedWorkspace {
  readonly path: string;
  readonly trustedAt: string;
  /** `restricted`: the workspace's sensitive settings or its owner have changed since. */
  readonly trust: Trust;
}

/**
 * Hash of a user's agreement: the sensitive settings of a workspace's file, independent of spacing, order and case of
 * the keys, and of the files that they start. `${VARIABLES}` are not expanded.
 */
export function sensitiveHash(settings: JsonObject, files: NamedFiles = new Map()): string {
  const hash = createHash('sha256').update(canonicalJson(Object.fromEntries(sensitiveSettings(settings))));
  if (files.size > 0) hash.update(JSON.stringify([...files]));
  return hash.digest('base64url');
}

/** Settings that start programs outside of the sandbox. */
const startsPrograms: readonly string[] = ['Hooks', 'McpServers', 'Agent', 'ApiKeyCommand'];

function filesOf(workspace: string, settings: JsonObject): NamedFiles {
  const commands = startsPrograms.map((name) => settings[name]);
  const { McpServers: servers } = settings;
  const directories = isJsonObject(servers) ? Object.values(servers).flatMap((each) => directoryOf(each)) : [];
  return namedFiles(workspace, commands, directories);
}

const directoryOf = (server: unknown): string[] =>
  isJsonObject(server) && typeof server['cwd'] === 'string' ? [server['cwd']] : [];

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([key, each]) => `${JSON.stringify(key)}:${canonicalJson(each)}`).join(',')}}`;
}

/**
 * Decides whether settings of a workspace's file are trusted, from the user's decisions.
 *
 * @param settings of the workspace's file, keys in the spelling of the schema
 * @returns with a warning when the decisions cannot be read
 */
export function trustOf(
  { home, workspace, decided }: TrustPlace,
  settings: JsonObject,
): { readonly trust: Trust; readonly warning?: string } {
  const { byPath, problem } = decided ?? readTrustFile(home);
  const path = realPathOr(workspace);
  const decision = byPath.get(path);
  const isTrusted =
    decision !== undefined &&
    decision.settingsHash === sensitiveHash(settings, filesOf(path, settings)) &&
    decision.owner === ownerOf(path);
  if (isTrusted) return { trust: 'trusted' };
  return { trust: 'restricted', ...(problem !== undefined && { warning: problem }) };
}

/** Whether a workspace is trusted now. A file that cannot be read asks for nothing; every start names its fault. */
export function workspaceTrust(place: TrustPlace): WorkspaceTrust {
  if (isUsersFile(place)) return { trust: 'trusted', restrictedSettings: [] };
  const settings = settingsOf(place.workspace) ?? {};
  const { trust } = trustOf(place, settings);
  return { trust, restrictedSettings: trust === 'trusted' ? [] : restrictedLayer(settings, {}).ignored };
}

function settingsOf(workspace: string): JsonObject | undefined {
  try {
    return readSettings(workspace);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

/** @throws ConfigError */
function readSettings(workspace: string): JsonObject {
  const file = workspaceConfigFile(workspace);
  const settings = readWorkspaceSettings(workspace);
  return settings === undefined ? {} : canonical({ file, settings }, () => undefined).settings;
}

/** Sensitive settings that a workspace requests, by path, with their written values. @throws ConfigError, TrustError */
export function requestedSettings(workspace: string): ReadonlyMap<string, unknown> {
  requireOwn(workspace);
  return sensitiveSettings(readSettings(workspace));
}

/** Files of a workspace that its sensitive settings start: a change of one makes it restricted again. @throws ConfigError, TrustError */
export function requestedFiles(workspace: string): NamedFiles {
  const { path } = requireOwn(workspace);
  return filesOf(path, readSettings(path));
}

/**
 * Records that the user agrees to the sensitive settings that a workspace has now.
 *
 * @param agreed settings that the user has seen; a file that differs by now is refused
 * @param seen files of `requestedFiles` that the user has seen
 * @throws TrustError when it is no workspace or belongs to another user; ConfigError when its file cannot be read
 */
export function trustWorkspace(
  { home, workspace }: TrustPlace,
  agreed?: ReadonlyMap<string, unknown>,
  seen?: NamedFiles,
): void {
  const { path, owner } = requireOwn(workspace);
  const settings = readSettings(path);
  const files = filesOf(path, settings);
  const [changed] = changedFiles(seen ?? files, files);
  if (changed !== undefined) {
    throw new TrustError(`${changed} changed while the question was open: read it, then run the command again.`);
  }
  if (
    agreed !== undefined &&
    canonicalJson(Object.fromEntries(agreed)) !== canonicalJson(Object.fromEntries(sensitiveSettings(settings)))
  ) {
    throw new TrustError(
      `${workspaceConfigFile(path)} changed while the question was open: read it, then run the command again.`,
    );
  }
  recordTrust(home, { path, owner }, settings, files);
}

function recordTrust(home: string, { path, owner }: OwnWorkspace, settings: JsonObject, files: NamedFiles): void {
  const settingsHash = sensitiveHash(settings, files);
  const agreement = agreementTo(path, textsOf(settings), files);
  const decision = { path, owner, settingsHash, trustedAt: new Date().toISOString(), agreement };
  changeTrustFile(home, (decisions) => [...decisions.filter((each) => each.path !== path), decision]);
}

/**
 * Keeps a trusted workspace trusted over a change of its file that the user's own client has asked for.
 *
 * @param before text of the file, from which the change was made
 * @param write writes the new settings
 * @throws TrustError when the settings before the change are not trusted; nothing is written
 */
export async function changeTrusted(
  place: TrustPlace,
  { before, after }: { readonly before: JsonObject; readonly after: JsonObject },
  write: () => Promise<void>,
): Promise<void> {
  const file = workspaceConfigFile(place.workspace);
  const [old, changed] = [before, after].map((settings) => canonical({ file, settings }, () => undefined).settings);
  if (old === undefined || changed === undefined || trustOf(place, old).trust !== 'trusted') {
    throw new TrustError(`${place.workspace} is restricted.`);
  }
  await write();
  const own = requireOwn(place.workspace);
  recordTrust(place.home, own, changed, filesOf(own.path, changed));
}

const textsOf = (settings: JsonObject): ReadonlyMap<string, string> =>
  new Map([...sensitiveSettings(settings)].map(([path, value]) => [path, canonicalJson(value)]));

/**
 * Changes of the sensitive settings, and of the files that they start, since the user agreed.
 *
 * @returns undefined without an earlier agreement, or for one of an earlier version, which names no parts
 * @throws ConfigError, TrustError
 */
export function changesSinceTrust({
  home,
  workspace,
}: TrustPlace): (AgreementChanges & { readonly trustedAt: string }) | undefined {
  const { path } = requireOwn(workspace);
  const decision = readTrustFile(home).byPath.get(path);
  if (decision?.agreement === undefined) return undefined;
  const settings = readSettings(path);
  const changes = changesSince(decision.agreement, path, textsOf(settings), filesOf(path, settings));
  return { ...changes, trustedAt: decision.trustedAt };
}

/** Revokes trust in the workspace and in MCP servers of editors for it. @returns whether anything was trusted */
export function revokeTrust({ home, workspace }: TrustPlace): boolean {
  const path = realPathOr(workspace);
  const hadServers = forgetEditorServers(home, path);
  if (!readTrustFile(home).byPath.has(path)) return hadServers;
  changeTrustFile(home, (decisions) => decisions.filter((each) => each.path !== path));
  return true;
}

/** Every workspace that the user has agreed to, by path. */
export function trustedWorkspaces(home: string): {
  readonly workspaces: TrustedWorkspace[];
  readonly problem?: string;
} {
  const { decisions, problem } = readTrustFile(home);
  const workspaces = decisions.map(({ path, trustedAt }) => {
    const { trust } = workspaceTrust({ home, workspace: path });
    return { path, trustedAt, trust };
  });
  workspaces.sort((one, other) => (one.path < other.path ? -1 : 1));
  return { workspaces, ...(problem !== undefined && { problem }) };
}

interface OwnWorkspace {
  readonly path: string;
  readonly owner: number | null;
}

/** A workspace whose `.oratorio` belongs to this user. @throws TrustError */
function requireOwn(workspace: string): OwnWorkspace {
  const path = realPathOr(workspace);
  const inside = join(path, directoryName);
  const stats = lstatOf(inside);
  if (stats === undefined) throw new TrustError(`${workspace} is not a workspace.`);
  if (stats.isSymbolicLink()) throw new TrustError(`${inside} is a symbolic link.`);
  if (!stats.isDirectory()) throw new TrustError(`${inside} is not a directory.`);
  const uid = process.getuid?.();
  if (uid !== undefined && stats.uid !== uid) {
    throw new TrustError(`${inside} belongs to another user (uid ${stats.uid}).`);
  }
  return { path, owner: uid === undefined ? null : stats.uid };
}

/** Uid of a workspace's `.oratorio`; null on systems without uids, undefined for a missing directory. */
function ownerOf(path: string): number | null | undefined {
  const stats = lstatOf(join(path, directoryName));
  if (stats === undefined) return undefined;
  return process.getuid === undefined ? null : stats.uid;
}
