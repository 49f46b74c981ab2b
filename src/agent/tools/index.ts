/**
 * The built-in tools (design §6): files, shell, web, sub-agents, plan. Called by the runtime, which decides who may call
 * which and when. Never here: approvals being asked for, conversations, MCP, tools of clients.
 */

import { join } from 'node:path';
import { type Config, directoryName } from '../../config/index.ts';
import { type PinnedDirectory, userHome } from '../../lib/index.ts';
import type { Tool } from '../tool.ts';
import { createAskUser } from './ask-user.ts';
import { type BackgroundProcesses, createProcessTools } from './background/index.ts';
import { AdoptedSandboxes } from './exec/adopted-sandboxes.ts';
import { placeholderRecords, workspaceSandbox } from './exec/command-place.ts';
import { createDelegateCommands, type DelegateCommands } from './exec/delegate-commands.ts';
import { createExec, type ExecSettings } from './exec/exec.ts';
import type { KeepSettings } from './exec/kept-command.ts';
import type { SandboxStatus } from './exec/sandbox.ts';
import type { Sandboxes } from './exec/sandboxes.ts';
import { ShellEnvironment, type ShellSetupOptions } from './exec/shell-environment.ts';
import { searchPathOf } from './exec/variables.ts';
import { createDelegateFiles, type DelegateFiles } from './files/delegate-files.ts';
import { createFileTools } from './files/index.ts';
import { createImageReader, type ReadImage } from './files/local-image.ts';
import { createTextReader, type ReadText } from './files/local-text.ts';
import { createPathSearch, type PathSearch } from './files/path-search.ts';
import type { OutputFiles } from './output-files.ts';
import type { PathRules } from './paths.ts';
import { createPlaceRules, type PlaceRules } from './places.ts';
import { createSpawnSubagent } from './subagent.ts';
import type { ThreadDirectories } from './thread-directories.ts';
import { createUpdatePlan } from './update-plan.ts';
import type { Resolver } from './web/destination.ts';
import { createWebSearch } from './web/search/web-search.ts';
import { createWebFetch } from './web/web-fetch.ts';

export { BackgroundProcesses } from './background/index.ts';
export { defineTool } from './define.ts';
export type { AdoptedSandboxes } from './exec/adopted-sandboxes.ts';
export { DelegateCommandError, type DelegateCommands } from './exec/delegate-commands.ts';
export { commandEnvironment, type EnvironmentSettings, newMarker } from './exec/environment.ts';
export { HandOverError, type KeepSettings } from './exec/kept-command.ts';
export { endKeptCalls, keptOfCall } from './exec/kept-exec.ts';
export {
  isSandboxInstalled,
  type SandboxMode,
  type SandboxStatus,
  sandboxStateOf,
  sandboxStatus,
} from './exec/sandbox.ts';
export { Sandboxes } from './exec/sandboxes.ts';
export { ShellEnvironment } from './exec/shell-environment.ts';
export { type RunUserCommand, type UserCommandEnd, userCommands } from './exec/user-command.ts';
export { DelegateFileError, type DelegateFiles } from './files/delegate-files.ts';
export type { ReadImage } from './files/local-image.ts';
export type { LocalText, ReadText } from './files/local-text.ts';
export type { FittingPaths, PathSearch } from './files/path-search.ts';
export { hashOfFile } from './files/replace-file.ts';
export { OutputFiles } from './output-files.ts';
export { isWithin } from './paths.ts';
export type { PlaceRules } from './places.ts';
export { ThreadDirectories } from './thread-directories.ts';

/** Settings of the tools. */
export interface ToolSettings {
  readonly tools: Config['Tools'];
  /** `Permissions.BlockedPaths`. */
  readonly blockedPaths: readonly string[];
  /** The workspace as the server opened it. Absent: not pinned. */
  readonly workspace?: PinnedDirectory | undefined;
  /** `Supervision.PassEnvironment`. */
  readonly passEnvironment: readonly string[];
  /** Keys and tokens of the configuration and of the launch: no command, address or query may hold one. */
  readonly secrets: readonly string[];
  /** Our environment, usually `process.env`: commands inherit from it, and its `PATH` finds programs. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user's home of Oratorio. Absolute. No tool touches it. */
  readonly home: string;
  /** Keeps whole outputs of commands. Absent: long ones are only shown at both ends. */
  readonly outputs?: OutputFiles;
  /** Directories for `/tmp` in these. Absent: it is empty in each. */
  readonly temporary?: ThreadDirectories;
  /** Sandboxes of conversations. Absent: each command has a sandbox of its own. */
  readonly sandboxes?: Sandboxes;
  /** Called with the problem of the sandbox, or none, when a command has shown it. */
  readonly onSandbox?: (problem: string | undefined) => void;
  /** Runs commands in the background. Absent: they run in the foreground only. */
  readonly processes?: BackgroundProcesses;
  /** Absent: commands end with this server. */
  readonly keep?: KeepSettings | undefined;
  /** Variables of the workspace for commands. Absent: none. */
  readonly shell?: ShellEnvironment;
  /** External agents that sub-agents may use. Absent: none. */
  readonly agents?: readonly string[];
  /** Absent: as this machine resolves names. */
  readonly resolve?: Resolver;
}

/** Settings by which every path is judged. */
export type PathSettings = Pick<ToolSettings, 'blockedPaths' | 'home' | 'workspace'>;

const rulesOf = ({ blockedPaths, home, workspace }: PathSettings): PathRules => ({
  blockedPaths,
  workspace,
  protectedDirectories: [...new Set([home, join(userHome(), directoryName)])],
});

/** Reads images that messages name by their paths, held by the rules of the file tools. */
export const imageReader = (settings: PathSettings): ReadImage => createImageReader(rulesOf(settings));

/** Finds files by parts of their paths, by the rules of the file tools. @param workspacePath real path */
export const pathSearch = (settings: PathSettings, workspacePath: string): PathSearch =>
  createPathSearch({ workspacePath, rules: rulesOf(settings) });

/** Reads and writes files for an external agent, by the rules of the file tools. */
export const delegateFiles = (settings: PathSettings & { readonly maxFileBytes: number }): DelegateFiles =>
  createDelegateFiles({ ...rulesOf(settings), maxFileBytes: settings.maxFileBytes });

/** Runs commands for an external agent, where and as `Exec` does. */
export const delegateCommands = (settings: ToolSettings): DelegateCommands =>
  createDelegateCommands(execSettingsOf(settings));

function execSettingsOf(settings: ToolSettings): ExecSettings {
  const { tools, secrets, environment, passEnvironment, home, outputs, processes, sandboxes, temporary, shell } =
    settings;
  const { onSandbox, keep } = settings;
  const { Shell } = tools;
  return {
    timeoutMs: Shell.TimeoutMs,
    maxTimeoutMs: Shell.MaxTimeoutMs,
    maxOutputChars: Shell.MaxOutputChars,
    sandbox: Shell.Sandbox,
    network: Shell.Network,
    visibleHome: Shell.VisibleHome,
    pathRules: { ...rulesOf(settings), readableDirectory: outputs?.directory },
    ...{
      home,
      environment,
      passEnvironment,
      secrets,
      outputs,
      processes,
      sandboxes,
      temporary,
      shell,
      onSandbox,
      keep,
    },
  };
}

/**
 * Takes over the sandboxes of an earlier server, and removes placeholders of killed servers. Call it before git runs.
 *
 * @param home of Oratorio
 * @param directory directory of the kept commands
 * @param keeps false: ends the commands
 */
export const takeSandboxes = (home: string, directory: string, keeps: boolean): Promise<AdoptedSandboxes> =>
  AdoptedSandboxes.take(placeholderRecords(home), directory, keeps);

/** Tries the sandbox that commands of a workspace have. @param workspacePath real path */
export const trySandbox = (settings: ToolSettings, workspacePath: string): Promise<SandboxStatus> =>
  workspaceSandbox(execSettingsOf(settings), workspacePath);

/** The environment of commands as the user's login shell and the project prepare it. */
export const shellEnvironment = (
  settings: Omit<ToolSettings, 'outputs' | 'temporary' | 'sandboxes' | 'processes' | 'shell' | 'agents' | 'resolve'>,
  { timeoutMs, onProblem }: Pick<ShellSetupOptions, 'timeoutMs' | 'onProblem'>,
): ShellEnvironment => {
  const place = execSettingsOf(settings);
  return new ShellEnvironment({ setup: settings.tools.Shell.Setup, settings: place, place, timeoutMs, onProblem });
};

/** Judges paths and programs for rules. Programs are judged with the `PATH` of the commands that `Exec` runs. */
export const placeRules = (
  settings: Pick<ToolSettings, 'blockedPaths' | 'home' | 'environment'> &
    Partial<Pick<ToolSettings, 'passEnvironment' | 'secrets' | 'shell'>>,
): PlaceRules =>
  createPlaceRules(rulesOf(settings), (workspacePath, environment) =>
    searchPathOf({ passEnvironment: [], secrets: [], ...settings }, { workspacePath, environment }),
  );

/** Reads text files without approval, by the rules of the file tools. */
export const textReader = (settings: PathSettings): ReadText => createTextReader(rulesOf(settings));

/**
 * Makes all builtin tools: the nine of design §6 in their order, then the extra ones. Cheap: a tool loads its expensive parts
 * when it is first used.
 * One set serves all threads.
 */
export function createBuiltinTools(settings: ToolSettings): readonly Tool[] {
  const { tools, secrets, outputs, processes, resolve } = settings;
  const { Web } = tools;
  const rules = { ...rulesOf(settings), readableDirectory: outputs?.directory };
  return [
    ...createFileTools({ ...rules, maxFileBytes: tools.File.MaxFileBytes }),
    createExec(execSettingsOf(settings)),
    createWebFetch({
      maxBytes: Web.MaxBytes,
      maxChars: Web.MaxChars,
      timeoutMs: Web.TimeoutMs,
      allowedHosts: Web.AllowedHosts,
      secrets,
      ...(resolve && { resolve }),
    }),
    createWebSearch({
      provider: Web.SearchProvider,
      url: Web.SearchUrl,
      apiKey: Web.SearchApiKey,
      timeoutMs: Web.TimeoutMs,
      maxBytes: Web.MaxBytes,
      secrets,
    }),
    createSpawnSubagent(settings.agents),
    createUpdatePlan(),
    createAskUser(),
    ...(processes ? createProcessTools(processes) : []),
  ];
}

/**
 * Selects the tools that `names` enables, built-in ones and those of MCP servers, in their own order. No names enable all
 * (specification §2.1). Names are matched without case.
 */
export function selectTools(tools: readonly Tool[], names: readonly string[]): readonly Tool[] {
  if (names.length === 0) return tools;
  const enabled = new Set(
    selectToolNames(
      tools.map(({ name }) => name),
      names,
    ),
  );
  return tools.filter(({ name }) => enabled.has(name));
}

/** Selects names of tools by the same rule as `selectTools`. */
export function selectToolNames(tools: readonly string[], names: readonly string[]): readonly string[] {
  if (names.length === 0) return tools;
  const enabled = new Set(names.map((name) => name.toLowerCase()));
  return tools.filter((name) => enabled.has(name.toLowerCase()));
}

/** Functions that load the parts which tools otherwise load on first use. */
export const toolParts: readonly (() => Promise<unknown>)[] = [
  () => import('diff'),
  () => import('./web/fetch-page.ts'),
  () => import('./web/search/search.ts'),
];
