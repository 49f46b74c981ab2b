import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { directoryName } from '../../../config/index.ts';
import { readJson } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import type { ApprovalNeed, Tool, ToolContext, ToolResult } from '../../tool.ts';
import { type BackgroundProcesses, stateOf } from '../background/index.ts';
import { defineTool } from '../define.ts';
import type { OutputFiles } from '../output-files.ts';
import { forbiddenPlaces, PathError, type PathRules, resolveInWorkspace } from '../paths.ts';
import { errorCode, failed, refused } from '../text.ts';
import { CommandOutput } from './command-output.ts';
import { commandEnvironment, type EnvironmentSettings, newMarker } from './environment.ts';
import { findProgram } from './programs.ts';
import { type CommandEnd, runCommand } from './run-command.ts';
import { type SandboxMode, type SandboxNetwork, sandboxPrefix, sandboxStatus } from './sandbox.ts';
import { tellEnd } from './tell-end.ts';

/** Settings of Exec, most of them from `Tools.Shell`. */
export interface ExecSettings extends EnvironmentSettings {
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxOutputChars: number;
  readonly sandbox: SandboxMode;
  readonly network: SandboxNetwork;
  /** The user's home of Oratorio; its list of workspaces says whose `.oratorio` a sandboxed command does not see. */
  readonly home: string;
  /** Where a working directory must not be, and what a sandboxed command does not see. */
  readonly pathRules: PathRules;
  /** Keeps whole outputs; absent: long ones are only shown at both ends. */
  readonly outputs?: OutputFiles | undefined;
  /** Absent: commands run in the foreground only. */
  readonly processes?: BackgroundProcesses | undefined;
}

interface ExecArguments {
  readonly command: string;
  readonly workingDir: string;
  readonly timeoutMs: number;
  readonly background: boolean;
}

/** Longest single argument of a program that Linux accepts (MAX_ARG_STRLEN), less its end. */
const maxCommandBytes = 131_071;
const commandWords = `a shell command without NUL characters, at most ${maxCommandBytes} bytes`;

/** `Exec`: one shell command, from its start to the end of all that it started. */
export function createExec(settings: ExecSettings): Tool {
  const { maxTimeoutMs } = settings;
  const timeoutMs = Math.min(settings.timeoutMs, maxTimeoutMs);
  /** The directory of each call when its approval was considered: a symlink may lead elsewhere by the time it runs. */
  const considered = new WeakMap<ExecArguments, string>();
  return defineTool({
    name: 'Exec',
    description:
      'Runs a bash command in the workspace and returns what it printed and its exit code. No terminal and no input: use options that ask nothing. Every process it started ends with it. Start servers and watchers with background: true; those run until they are stopped, also after your answer.',
    isReadOnly: false,
    parameters: v.object({
      command: v.pipe(
        v.string(commandWords),
        v.check(
          (text) => text.trim() !== '' && !text.includes('\0') && Buffer.byteLength(text) <= maxCommandBytes,
          commandWords,
        ),
        v.description('The command, as typed into bash.'),
      ),
      workingDir: v.pipe(
        v.optional(v.string('a path of a directory'), '.'),
        v.description('Directory to run in, relative to the workspace. Default: the workspace.'),
      ),
      timeoutMs: v.pipe(
        v.optional(v.pipe(v.number('a number of milliseconds'), v.minValue(100, 'at least 100')), timeoutMs),
        v.description(`Milliseconds after which it is ended, at most ${maxTimeoutMs}. Default: ${timeoutMs}.`),
        v.transform((asked) => Math.min(Math.ceil(asked), maxTimeoutMs)),
      ),
      background: v.pipe(
        v.optional(v.boolean(), false),
        v.description(
          'Returns an id after a second and leaves the command running, without a time limit. Default: false.',
        ),
      ),
    }),
    aliases: {
      command: ['cmd', 'script'],
      workingDir: ['cwd', 'workdir', 'directory', 'path'],
      background: ['runInBackground', 'isBackground'],
    },
    placeOf: ({ workingDir }) => workingDir,
    async approvalFor(args, { workspacePath }) {
      const directory = await approvedDirectory(args.workingDir, workspacePath, settings);
      considered.set(args, directory);
      return needOf(args.command, directory);
    },
    run: (args, context) => exec(args, considered.get(args), settings, context),
  });
}

/** The exact command in one real directory: the same text in a worktree, or with anything added, is another command. */
const needOf = (command: string, directory: string): ApprovalNeed => ({
  kind: 'shell',
  operation: 'run',
  target: command,
  workingDirectory: directory,
  scopeKey: `exec:${JSON.stringify([directory, command])}`,
  covers: `exactly this command in ${directory}`,
});

/** The real directory that a call would run in. One that cannot be judged is named as given; `run` refuses it. */
async function approvedDirectory(given: string, workspacePath: string, { pathRules }: ExecSettings): Promise<string> {
  if (given === '.') return workspacePath;
  try {
    return (await resolveInWorkspace(workspacePath, given, pathRules)).path;
  } catch {
    return given;
  }
}

async function exec(
  args: ExecArguments,
  approved: string | undefined,
  settings: ExecSettings,
  context: ToolContext,
): Promise<ToolResult> {
  context.signal.throwIfAborted();
  const cwd = await findDirectory(args.workingDir, settings, context);
  if (typeof cwd !== 'string') return cwd;
  if (approved !== undefined && approved !== cwd) {
    return refused(`workingDir ${args.workingDir} now leads elsewhere than when approval was considered; try again.`);
  }
  const prefix = await findPrefix(cwd, settings, context);
  if (!prefix) return failed(await whyNoSandbox(settings));
  const argv = [...prefix, ...shell(args.command, settings.environment['PATH'])];
  if (args.background) return startInBackground(args.command, { argv, cwd }, settings, context);
  const output = new CommandOutput({
    ...settings,
    whole: settings.outputs?.begin(context.threadId),
    tell: context.onOutput,
  });
  const marker = newMarker(settings.environment);
  let end: CommandEnd;
  try {
    end = await runCommand({
      argv,
      cwd,
      env: commandEnvironment(settings, marker),
      marker,
      timeoutMs: args.timeoutMs,
      signal: context.signal,
      onText: (text) => output.push(text),
    });
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    return failed(`Exec: the command could not be started (${code}).`);
  } finally {
    output.close();
  }
  context.signal.throwIfAborted();
  return tellEnd(end, output.read(), args.timeoutMs, settings.maxTimeoutMs);
}

/** Starts a command, and watches it for a moment: most that fail do so at once. */
async function startInBackground(
  command: string,
  place: { readonly argv: readonly string[]; readonly cwd: string },
  settings: ExecSettings,
  { threadId, signal, onOutput }: ToolContext,
): Promise<ToolResult> {
  const marker = newMarker(settings.environment);
  // A bash that reads from a socket takes itself for one below rsh, and reads ~/.bashrc, unless another shell started it.
  const env = { ...commandEnvironment(settings, marker), SHLVL: '1' };
  const process = settings.processes?.start({ ...place, env, marker, threadId, command });
  if (!process) {
    const { maxBackgroundProcesses } = defaults.agent;
    return failed(`Exec: ${maxBackgroundProcesses} background processes run already. End one with ExecStop first.`);
  }
  const enough = AbortSignal.any([signal, AbortSignal.timeout(defaults.agent.backgroundStartMs)]);
  await new Promise<void>((resolve) => {
    enough.addEventListener('abort', () => resolve(), { once: true });
    void process.ended.then(resolve);
  });
  const result = stateOf(process);
  onOutput(result.text);
  return result;
}

/** The canonical path of a directory inside the workspace, or what is wrong with it. */
async function findDirectory(
  given: string,
  { pathRules }: ExecSettings,
  { workspacePath }: ToolContext,
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

/** Directories of the kernel; the sandbox has its own. */
const kernelDirectories: ReadonlySet<string> = new Set(['/proc', '/sys', '/dev']);

async function findPrefix(
  cwd: string,
  { sandbox, network, home, pathRules, environment }: ExecSettings,
  { workspacePath }: ToolContext,
): Promise<readonly string[] | undefined> {
  if (sandbox === 'off') return [];
  const places = await forbiddenPlaces(workspacePath, pathRules);
  const hidden = [
    ...places.filter(({ path }) => !kernelDirectories.has(path)),
    ...otherWorkspaces(home, workspacePath).map((path) => ({ path: join(path, directoryName) })),
  ];
  return sandboxPrefix(sandbox, { workspacePath, cwd, network, hidden }, environment);
}

const KnownWorkspaces = v.object({ appServers: v.array(v.object({ canonicalWorkspacePath: v.string() })) });

/** Workspaces that the Hub of this home knows, but for this one: their `.oratorio` may hold keys. */
function otherWorkspaces(home: string, workspacePath: string): readonly string[] {
  const known = readJson(join(home, 'hub', 'appservers.json'), KnownWorkspaces);
  if (known.kind !== 'ok') return [];
  return known.value.appServers
    .map(({ canonicalWorkspacePath }) => canonicalWorkspacePath)
    .filter((path) => path !== workspacePath);
}

async function whyNoSandbox({ sandbox, network, environment }: ExecSettings): Promise<string> {
  const { reason } = await sandboxStatus(sandbox, environment, network);
  return `Exec: the setting Tools.Shell.Sandbox is "required", and there is no sandbox: ${reason}. Only the user can change that.`;
}

/**
 * Both outputs into one pipe, so that what was written first is read first. `$0` and `$1` keep the command out of any
 * quoting.
 */
function shell(command: string, path: string | undefined): string[] {
  const program = findProgram('bash', path) ?? '/bin/sh';
  return ['/bin/sh', '-c', 'exec "$0" -c "$1" 2>&1', program, command];
}
