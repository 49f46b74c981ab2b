import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { defaults, outsideScope } from '../../../protocol/index.ts';
import { keptMarker } from '../../../supervise/index.ts';
import type { ApprovalNeed, Tool, ToolContext, ToolResult } from '../../tool.ts';
import { type BackgroundProcesses, stateOf } from '../background/index.ts';
import { defineTool } from '../define.ts';
import { resolveInWorkspace } from '../paths.ts';
import { errorCode, failed, refused } from '../text.ts';
import { type CommandPlace, findDirectory, findPlace, outsideOf, type PlaceSettings } from './command-place.ts';
import { newMarker } from './environment.ts';
import type { GitFinding } from './held-directory.ts';
import { HandOverError, type KeepSettings } from './kept-command.ts';
import { adoptExec, outputOf, runKeptShell, shellPath } from './kept-exec.ts';
import { inPlace, maxWrapperText, SandboxStartError, startProblem } from './placed-command.ts';
import { reportEnd } from './report-end.ts';
import { type CommandEnd, runCommand } from './run-command.ts';
import { sandboxStatus } from './sandbox.ts';
import { environmentOf, type VariableSettings } from './variables.ts';

/** Settings of Exec, most of them from `Tools.Shell`. */
export interface ExecSettings extends VariableSettings, PlaceSettings {
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxOutputChars: number;
  /** Absent: commands run in the foreground only. */
  readonly processes?: BackgroundProcesses | undefined;
  /** Absent: commands end with the agent server. */
  readonly keep?: KeepSettings | undefined;
}

interface ExecArguments {
  readonly command: string;
  readonly workingDir: string;
  readonly timeoutMs: number;
  readonly background: boolean;
  readonly outside: boolean;
  readonly reason: string;
}

/** Longest single argument of a program that Linux accepts (MAX_ARG_STRLEN), less its end. */
const maxCommandBytes = 131_071;
const commandWords = `a shell command without NUL characters, at most ${maxCommandBytes} bytes`;

/** Longest reason, in characters. */
const maxReason = 500;

/** `Exec`: one shell command, from its start to the end of all that it started. */
export function createExec(settings: ExecSettings): Tool {
  const { maxTimeoutMs } = settings;
  const timeoutMs = Math.min(settings.timeoutMs, maxTimeoutMs);
  /** The directory of each call when its approval was considered: a symlink may lead elsewhere by the time it runs. */
  const considered = new WeakMap<ExecArguments, string>();
  return defineTool({
    name: 'Exec',
    description:
      'Runs a bash command: output and exit code. No terminal, no input. Every process it started ends with it, except with background: true, for servers and watchers.',
    isReadOnly: false,
    parameters: v.object({
      command: v.pipe(
        v.string(commandWords),
        v.check(
          (text) => text.trim() !== '' && !text.includes('\0') && Buffer.byteLength(text) <= maxCommandBytes,
          commandWords,
        ),
      ),
      workingDir: v.pipe(v.optional(v.string('a path of a directory'), '.'), v.description('Default: the workspace.')),
      timeoutMs: v.pipe(
        v.optional(v.pipe(v.number('a number of milliseconds'), v.minValue(100, 'at least 100')), timeoutMs),
        v.description(`At most ${maxTimeoutMs}. Default: ${timeoutMs}.`),
        v.transform((asked) => Math.min(Math.ceil(asked), maxTimeoutMs)),
      ),
      background: v.pipe(
        v.optional(v.boolean(), false),
        v.description('Returns an id and leaves the command running.'),
      ),
      outside: v.pipe(
        v.optional(v.boolean(), false),
        v.description('Runs without the sandbox. The user is asked each time.'),
      ),
      reason: v.pipe(
        v.optional(v.pipe(v.string('a text'), v.maxLength(maxReason, `at most ${maxReason} characters`)), ''),
        v.description('Why outside.'),
      ),
    }),
    aliases: {
      command: ['cmd', 'script'],
      workingDir: ['cwd', 'workdir', 'directory', 'path'],
      background: ['runInBackground', 'isBackground'],
      reason: ['justification'],
    },
    placeOf: ({ workingDir }) => workingDir,
    async approvalFor(args, { workspacePath }) {
      const directory = await approvedDirectory(args.workingDir, workspacePath, settings);
      considered.set(args, directory);
      const need = needOf(args.command, directory);
      return args.outside && (await isSandboxed(settings, workspacePath)) ? outsideNeed(need, args.reason) : need;
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

const isSandboxed = async ({ sandbox, environment, network }: ExecSettings, workspacePath: string): Promise<boolean> =>
  (await sandboxStatus(sandbox, outsideOf(workspacePath, environment), network)).available;

/** Outside of the sandbox an answer holds once. */
const outsideNeed = (need: ApprovalNeed, reason: string): ApprovalNeed => ({
  ...need,
  scopeKey: `${outsideScope}${randomUUID()}`,
  covers: 'this call only',
  isAskedAlways: true,
  reason: `It would run outside of the sandbox.${reason === '' ? '' : ` The agent says why: ${reason}`}`,
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
  if (context.wasStarted && settings.keep && !args.background) {
    const adopted = await adoptExec({ ...settings, keep: settings.keep }, context);
    if (adopted) return adopted;
  }
  const cwd = await findDirectory(args.workingDir, settings, context);
  if (typeof cwd !== 'string') return cwd;
  if (approved !== undefined && approved !== cwd) {
    return refused(`workingDir ${args.workingDir} now leads elsewhere than when approval was considered; try again.`);
  }
  const network = context.hasNetwork ? 'allow' : settings.network;
  const place = await findPlace(cwd, settings, context, { network, isOutside: args.outside });
  if (typeof place === 'string') return failed(place);
  return args.background
    ? startInBackground(args, cwd, place, settings, context)
    : runInForeground(args, cwd, place, settings, context);
}

/** Whether a command in a place may outlive this server. */
const isKeptIn = ({ isSandboxed, kept }: CommandPlace): boolean => !isSandboxed || kept !== undefined;

async function runInForeground(
  { command, timeoutMs }: ExecArguments,
  cwd: string,
  place: CommandPlace,
  settings: ExecSettings,
  context: ToolContext,
): Promise<ToolResult> {
  const output = outputOf(settings, context);
  const onText = (text: string) => output.push(text);
  let end: CommandEnd;
  let asides: readonly GitFinding[] = [];
  let isLeft = false;
  try {
    end =
      settings.keep && isKeptIn(place)
        ? await runKeptShell({ command, cwd, place, timeoutMs, output }, { ...settings, keep: settings.keep }, context)
        : await runShell({ command, cwd, place, timeoutMs, onText }, settings, context);
  } catch (error) {
    if (error instanceof SandboxStartError) return failed(`Exec: ${error.message}`);
    isLeft = error instanceof HandOverError;
    if (isLeft) place.kept?.handOver();
    const code = errorCode(error);
    if (code === undefined) throw error;
    return failed(`Exec: the command could not be started (${code}).`);
  } finally {
    if (!isLeft) asides = await place.leave();
    output.close();
  }
  context.signal.throwIfAborted();
  return reportEnd(end, output.read(), { ...settings, timeoutMs, isSandboxed: place.isSandboxed, asides });
}

/** A command and where it runs. */
interface ShellRun {
  readonly command: string;
  readonly cwd: string;
  readonly place: CommandPlace;
  readonly timeoutMs: number;
  readonly onText: (text: string) => void;
}

/** Runs a shell command as `runCommand` does, with the environment of commands. */
export async function runShell(
  { command, cwd, place, timeoutMs, onText }: ShellRun,
  settings: ExecSettings,
  context: Pick<ToolContext, 'workspacePath' | 'environment' | 'signal' | 'onlyReads'>,
): Promise<CommandEnd> {
  const marker = newMarker(settings.environment);
  const env = await environmentOf(settings, context, marker);
  let wrapper = '';
  const end = await runCommand({
    ...inPlace(place, command, { ...env, ...place.env }, shellPath(settings, context)),
    cwd,
    ...{ marker, timeoutMs, signal: context.signal, onText },
    // Standard error of the command is part of its output: this text is from the programs before it.
    onErrorText: (text) => {
      wrapper = (wrapper + text).slice(0, maxWrapperText);
      onText(text);
    },
  });
  const problem = place.isSandboxed ? startProblem(wrapper, end.exitCode) : undefined;
  if (problem === undefined) return end;
  settings.onSandbox?.(problem);
  throw new SandboxStartError(problem);
}

/** Starts a command, and watches it for a moment: most that fail do so at once. */
async function startInBackground(
  { command }: ExecArguments,
  cwd: string,
  place: CommandPlace,
  settings: ExecSettings,
  context: ToolContext,
): Promise<ToolResult> {
  const { threadId, turnId, callId, signal, onOutput } = context;
  const keptId = settings.keep && isKeptIn(place) ? randomUUID() : undefined;
  const marker =
    settings.keep && keptId ? keptMarker(settings.keep.directory, keptId) : newMarker(settings.environment);
  const variables = await environmentOf(settings, context, marker);
  // A bash that reads from a socket takes itself for one below rsh, and reads ~/.bashrc, unless another shell started it.
  const whole = { ...variables, ...place.env, SHLVL: '1' };
  const { argv, env } = inPlace(place, command, whole, shellPath(settings, context));
  const process = settings.processes?.start({
    ...{ argv, cwd, env, marker, threadId, turnId, callId, command, keptId },
    place: place.kept,
  });
  if (!process) {
    await place.leave();
    const { maxBackgroundProcesses } = defaults.agent;
    return failed(`Exec: ${maxBackgroundProcesses} background processes run already. End one with ExecStop first.`);
  }
  void process.ended.then(place.leave);
  const enough = AbortSignal.any([signal, AbortSignal.timeout(defaults.agent.backgroundStartMs)]);
  await new Promise<void>((resolve) => {
    enough.addEventListener('abort', () => resolve(), { once: true });
    void process.ended.then(resolve);
  });
  const result = stateOf(process);
  onOutput(result.text);
  return result;
}
