import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { directoryName } from '../../../config/index.ts';
import { readJson } from '../../../lib/index.ts';
import { type KeptSandbox, outsideEnvironment } from '../../../supervise/index.ts';
import type { ToolContext, ToolResult } from '../../tool.ts';
import type { OutputFiles } from '../output-files.ts';
import { forbiddenPlaces, PathError, type PathRules, resolveInWorkspace } from '../paths.ts';
import { errorCode, failed, refused } from '../text.ts';
import type { ThreadDirectories } from '../thread-directories.ts';
import type { GitFinding } from './held-directory.ts';
import type { KeepSettings } from './kept-command.ts';
import type { SandboxNetwork, SandboxPlaces } from './mounts.ts';
import { openSandbox, type SandboxMode, type SandboxStatus, sandboxStatus } from './sandbox.ts';
import type { Sandboxes } from './sandboxes.ts';

/** Settings that decide where commands run. */
export interface PlaceSettings {
  readonly sandbox: SandboxMode;
  readonly network: SandboxNetwork;
  /** The user's home of Oratorio; its list of workspaces decides which `.oratorio` directories a sandboxed command does not see. */
  readonly home: string;
  /** Forbidden working directories, and paths that a sandboxed command does not see. */
  readonly pathRules: PathRules;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `Tools.Shell.VisibleHome`. */
  readonly visibleHome?: readonly string[] | undefined;
  readonly outputs?: OutputFiles | undefined;
  /** Directories for `/tmp` in the sandboxes. Absent: each sandbox starts with an empty `/tmp`. */
  readonly temporary?: ThreadDirectories | undefined;
  /** Sandboxes that stay. Absent: each command has its own. */
  readonly sandboxes?: Sandboxes | undefined;
  /** Absent: commands end with the agent server. */
  readonly keep?: KeepSettings | undefined;
  /** Called with the state of the sandbox when a command has shown it. */
  readonly onSandbox?: ((problem: string | undefined) => void) | undefined;
}

/** Sandbox of a command that may outlive this server, with the names of its record: see `KeptCommand`. */
export interface KeptPlace {
  /** Workspace of the sandbox in which the command runs. */
  readonly walls: string;
  /** Absent: it has a sandbox of its own. */
  readonly room?: KeptSandbox;
  /** Descriptor that keeps the sandbox open. */
  readonly line?: number;
  /** Leaves the place to the next server. */
  readonly handOver: () => void;
}

/** Words to put before a command, and what to do when it has ended. */
export interface CommandPlace {
  readonly words: readonly string[];
  /** Directory that the shell of the command changes to; undefined: it begins there. A shell for that alone would cost each command one more start. */
  readonly directory?: string;
  readonly isSandboxed: boolean;
  /** Variables of the place. */
  readonly env: Readonly<Record<string, string>>;
  /** Leaves the place after the end of the command. @returns entries that were set aside in git directories */
  readonly leave: () => Promise<readonly GitFinding[]>;
  /** Absent: in a sandbox, the command ends with this server. */
  readonly kept?: KeptPlace;
}

const outside: CommandPlace = { words: [], isSandboxed: false, env: {}, leave: async () => [] };

/** Returns the canonical path of a directory inside the workspace, or a result that names its problem. */
export async function findDirectory(
  given: string,
  { pathRules }: PlaceSettings,
  { workspacePath }: Pick<ToolContext, 'workspacePath'>,
): Promise<string | ToolResult> {
  try {
    const { path, isInside, blockedBecause } = await resolveInWorkspace(workspacePath, given, pathRules);
    if (blockedBecause !== undefined) return refused(`workingDir ${given} ${blockedBecause}.`);
    if (!isInside) return refused(`workingDir must be inside the workspace, and ${given} is not.`);
    return (await stat(path)).isDirectory() ? path : failed(`Exec: workingDir ${given} is not a directory.`);
  } catch (error) {
    if (error instanceof PathError) return failed(`Exec: workingDir: ${error.message}`);
    return failed(`Exec: workingDir ${given} cannot be used (${errorCode(error) ?? 'unknown reason'}).`);
  }
}

/** Directory of the records of placeholders: one file for each process that makes sandboxes. @param home of Oratorio */
export const placeholderRecords = (home: string): string => join(home, 'sandboxes');

/** Directories of the kernel; the sandbox has its own. */
const kernelDirectories: ReadonlySet<string> = new Set(['/proc', '/sys', '/dev']);

/** Places of sandboxed commands of a workspace. */
export async function sandboxPlaces(
  { home, pathRules, environment, visibleHome }: PlaceSettings,
  workspacePath: string,
  network: SandboxNetwork,
): Promise<SandboxPlaces> {
  const forbidden = await forbiddenPlaces(workspacePath, pathRules);
  return {
    ...{ workspacePath, network, environment, visibleHome, records: placeholderRecords(home) },
    hidden: [
      ...forbidden.filter(({ path }) => !kernelDirectories.has(path)),
      ...otherWorkspaces(home, workspacePath).map((path) => ({ path: join(path, directoryName) })),
    ].map(({ path }) => ({ path })),
  };
}

/** Whether commands of a workspace would run in a sandbox: a trial with the places of this workspace. */
export async function workspaceSandbox(settings: PlaceSettings, workspacePath: string): Promise<SandboxStatus> {
  const { sandbox, environment, network } = settings;
  const places = sandbox === 'off' ? undefined : await sandboxPlaces(settings, workspacePath, network);
  return sandboxStatus(sandbox, outsideOf(workspacePath, environment), network, places);
}

/**
 * Chooses where a command runs: in the sandbox of its conversation, in its own sandbox, or without a sandbox.
 *
 * @param wanted network in place of the setting; outside: without a sandbox, which the user has approved
 * @returns a sentence for the model when the sandbox cannot be made
 */
export async function findPlace(
  cwd: string,
  settings: PlaceSettings,
  { workspacePath, threadId }: Pick<ToolContext, 'workspacePath' | 'threadId'>,
  {
    network = settings.network,
    isOutside = false,
  }: { readonly network?: SandboxNetwork; readonly isOutside?: boolean } = {},
): Promise<CommandPlace | string> {
  const { sandbox, environment, outputs, temporary, sandboxes, keep, onSandbox } = settings;
  if (sandbox === 'off' || isOutside) {
    await sandboxes?.swept;
    return outside;
  }
  const places = await sandboxPlaces(settings, workspacePath, network);
  // Elsewhere the system does not end the processes of a sandbox with its first one.
  const kept = process.platform === 'linux' ? keep?.directory : undefined;
  const own = { readable: outputs?.open(threadId), temporary: temporary?.open(threadId), kept };
  const use = network === settings.network ? await sandboxes?.enter(threadId, { ...places, ...own }) : undefined;
  if (use) {
    onSandbox?.(undefined);
    return {
      ...{ words: use.words, directory: cwd, isSandboxed: true, env: { TMPDIR: '/tmp' }, leave: use.leave },
      ...(use.kept && { kept: { walls: workspacePath, ...use.kept } }),
    };
  }
  const opened = await openSandbox(sandbox, { ...places, kept, cwd }, outsideOf(workspacePath, environment));
  if ('problem' in opened) {
    onSandbox?.(opened.problem);
    return sandbox === 'required'
      ? `Exec: the setting Tools.Shell.Sandbox is "required", and there is no sandbox: ${opened.problem}. Only the user can change that.`
      : `Exec: the command did not run: ${opened.problem}. The sandbox failed, not the command: oratorio doctor names the place, and outside: true asks the user to run it without the sandbox.`;
  }
  const { words, close, handOver } = opened;
  if (words.length > 0) onSandbox?.(undefined);
  return {
    ...{ ...outside, words, isSandboxed: words.length > 0, leave: close },
    ...(handOver && { kept: { walls: workspacePath, handOver } }),
  };
}

/** Variables with which programs are found that run outside of the sandbox: never the workspace's variables. */
export const outsideOf = (
  workspacePath: string,
  environment: PlaceSettings['environment'],
): PlaceSettings['environment'] => outsideEnvironment(workspacePath, environment);

const KnownWorkspaces = v.object({ appServers: v.array(v.object({ canonicalWorkspacePath: v.string() })) });

/** Workspaces that the Hub of this home knows, but for this one: their `.oratorio` may hold keys. */
function otherWorkspaces(home: string, workspacePath: string): readonly string[] {
  const known = readJson(join(home, 'hub', 'appservers.json'), KnownWorkspaces);
  if (known.kind !== 'ok') return [];
  return known.value.appServers
    .map(({ canonicalWorkspacePath }) => canonicalWorkspacePath)
    .filter((path) => path !== workspacePath);
}
