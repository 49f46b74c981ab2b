/** Exec with commands that outlive the agent server. */
import { randomUUID } from 'node:crypto';
import { closeSync } from 'node:fs';
import { findProgram, readBoundedFile } from '../../../lib/index.ts';
import {
  endKeptCommand,
  type KeptCommand,
  keptFiles,
  keptMarker,
  listKept,
  searchPathOutside,
} from '../../../supervise/index.ts';
import type { ToolContext, ToolResult } from '../../tool.ts';
import type { OutputFiles } from '../output-files.ts';
import { failed } from '../text.ts';
import { adoptKept } from './adopt-kept.ts';
import { CommandOutput } from './command-output.ts';
import type { CommandPlace } from './command-place.ts';
import type { GitFinding } from './held-directory.ts';
import { beginKept, forgetKept, HandOverError, type KeepSettings, runKept } from './kept-command.ts';
import type { SandboxNetwork } from './mounts.ts';
import { inPlace, maxWrapperText, SandboxStartError, startProblem } from './placed-command.ts';
import { reportEnd } from './report-end.ts';
import type { CommandEnd } from './run-command.ts';
import { environmentOf, type VariableSettings } from './variables.ts';

interface OutputSettings {
  readonly secrets: readonly string[];
  readonly maxOutputChars: number;
  readonly outputs?: OutputFiles | undefined;
}

/** Settings of Exec that a kept command needs. */
export interface KeptExecSettings extends VariableSettings, OutputSettings {
  readonly keep: KeepSettings;
  readonly maxTimeoutMs: number;
  readonly network: SandboxNetwork;
}

interface KeptShell {
  readonly command: string;
  readonly cwd: string;
  readonly place: CommandPlace;
  readonly timeoutMs: number;
  readonly output: CommandOutput;
}

/** Output of a command for the model and for live readers. */
export const outputOf = (
  settings: OutputSettings,
  { threadId, onOutput }: Pick<ToolContext, 'threadId' | 'onOutput'>,
): CommandOutput => new CommandOutput({ ...settings, whole: settings.outputs?.begin(threadId), emit: onOutput });

/** `PATH` that finds the shell, without the workspace. */
export const shellPath = (
  { environment }: Pick<KeptExecSettings, 'environment'>,
  { workspacePath }: Pick<ToolContext, 'workspacePath'>,
): string => searchPathOutside(workspacePath, environment['PATH']);

/** Runs a shell command under a keeper. @throws SandboxStartError */
export async function runKeptShell(
  { command, cwd, place, timeoutMs, output }: KeptShell,
  settings: KeptExecSettings,
  context: ToolContext,
): Promise<CommandEnd> {
  const { keep } = settings;
  const { signal, onStored = (work) => work() } = context;
  const id = randomUUID();
  // Written before any wait: a hand-over until the start leaves a record of a command that has not run.
  const { walls, room, line } = place.kept ?? {};
  const kept = beginKept(keep, context, {
    id,
    timeoutMs,
    ...(walls !== undefined && { walls }),
    ...(room && { room }),
  });
  const forget = (): void => forgetKept(keep, kept.command);
  try {
    const env = await environmentOf(settings, context, keptMarker(keep.directory, id)).catch((error: unknown) => {
      closeSync(kept.fd);
      throw error;
    });
    const end = await runKept(
      {
        ...(place.isSandboxed
          ? inPlace(place, command, { ...env, ...place.env }, shellPath(settings, context))
          : { argv: [findProgram('bash', shellPath(settings, context)) ?? '/bin/sh', '-c', command], env }),
        ...{ cwd, timeoutMs, signal, line, ...readersOf(output) },
      },
      kept,
      keep,
    );
    passErrors(kept.command, keep, end, output);
    onStored(forget);
    return end;
  } catch (error) {
    if (!(error instanceof HandOverError)) forget();
    throw error;
  }
}

/** Adds errors of the programs that start a sandboxed command to its output. @throws SandboxStartError if the command did not run */
function passErrors(
  { id, walls }: KeptCommand,
  { directory }: KeepSettings,
  { exitCode }: CommandEnd,
  output: CommandOutput,
): void {
  if (walls === undefined || exitCode === 0) return;
  let text = '';
  try {
    text = (readBoundedFile(keptFiles(directory, id).errors) ?? '').slice(0, maxWrapperText);
  } catch {
    // A program that starts the command wrote too much, or the file was replaced.
  }
  output.push(text);
  const problem = startProblem(text, exitCode);
  if (problem !== undefined) throw new SandboxStartError(problem);
}

/** Kept command of a call that an earlier agent server has started. */
export const keptOfCall = (
  { directory }: KeepSettings,
  { threadId, turnId, callId }: Pick<ToolContext, 'threadId' | 'turnId' | 'callId'>,
): KeptCommand | undefined =>
  listKept(directory).find(
    (kept) => kept.threadId === threadId && kept.turnId === turnId && kept.callId === callId && !kept.background,
  );

/** Ends the commands of calls that are not finished any more. Background processes stay. */
export async function endKeptCalls(
  { directory, leave }: KeepSettings,
  isOver: (call: Pick<ToolContext, 'threadId' | 'turnId'>) => boolean,
): Promise<void> {
  for (const kept of listKept(directory)) {
    if (kept.background || !isOver(kept)) continue;
    await endKeptCommand(directory, kept);
    await leave?.(kept);
  }
}

/**
 * Finishes a call that an earlier agent server has started: waits for the end of its command.
 *
 * @returns undefined: the command never ran
 * @throws the reason of an abort of the signal
 */
export async function adoptExec(settings: KeptExecSettings, context: ToolContext): Promise<ToolResult | undefined> {
  const { signal, onStored = (work) => work() } = context;
  const kept = keptOfCall(settings.keep, context);
  if (!kept) return unknownResult('');
  const output = outputOf(settings, context);
  const { keep } = settings;
  let end: Awaited<ReturnType<typeof adoptKept>>;
  let asides: readonly GitFinding[] = [];
  let isLeft = false;
  try {
    end = await adoptKept(kept, keep, { signal, ...readersOf(output) });
    if (typeof end === 'object') passErrors(kept, keep, end, output);
  } catch (error) {
    if (error instanceof SandboxStartError) {
      onStored(() => forgetKept(keep, kept));
      return failed(`Exec: ${error.message}`);
    }
    isLeft = error instanceof HandOverError;
    throw error;
  } finally {
    if (!isLeft) asides = (await keep.leave?.(kept)) ?? [];
    output.close();
  }
  const forget = (): void => forgetKept(keep, kept);
  if (end === 'notStarted') {
    forget();
    return undefined;
  }
  onStored(forget);
  signal.throwIfAborted();
  if (end === undefined) return unknownResult(output.read());
  const { maxTimeoutMs, network } = settings;
  const facts = {
    timeoutMs: kept.timeoutMs ?? maxTimeoutMs,
    maxTimeoutMs,
    network,
    isSandboxed: kept.walls !== undefined,
    asides,
  };
  return reportEnd(end, output.read(), facts);
}

/** Result of a command whose keeper ended first. */
const unknownResult = (output: string): ToolResult => ({
  text: `The outcome is unknown: the agent server ended while Exec ran, and it was not repeated. Check its effects before you continue.${output === '' ? '' : ` Output until then: ${output}`}`,
  isError: true,
  isUnknown: true,
});

const readersOf = (output: CommandOutput) => ({
  onText: (text: string) => output.push(text),
  onSkip: (bytes: number) => output.skip(bytes),
});
