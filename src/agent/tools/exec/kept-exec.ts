/** Exec with commands that outlive the agent server. Not for sandboxed ones: see `docs/tools.md`. */
import { randomUUID } from 'node:crypto';
import { closeSync } from 'node:fs';
import { findProgram } from '../../../lib/index.ts';
import { endKeptCommand, type KeptCommand, keptMarker, listKept, searchPathOutside } from '../../../supervise/index.ts';
import type { ToolContext, ToolResult } from '../../tool.ts';
import type { OutputFiles } from '../output-files.ts';
import { adoptKept } from './adopt-kept.ts';
import { CommandOutput } from './command-output.ts';
import { beginKept, forgetKept, HandOverError, type KeepSettings, runKept } from './kept-command.ts';
import { reportEnd } from './report-end.ts';
import type { CommandEnd } from './run-command.ts';
import { environmentOf, type VariableSettings } from './variables.ts';
import type { SandboxNetwork } from './walls.ts';

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

/** Runs a shell command below a keeper, outside of the sandbox. */
export async function runKeptShell(
  { command, cwd, timeoutMs, output }: KeptShell,
  settings: KeptExecSettings,
  context: ToolContext,
): Promise<CommandEnd> {
  const { keep } = settings;
  const { signal, onStored = (work) => work() } = context;
  const id = randomUUID();
  // Written before any wait: a hand-over until the start leaves a record of a command that has not run.
  const kept = beginKept(keep, context, { id, timeoutMs });
  const forget = (): void => forgetKept(keep, kept.command);
  try {
    const env = await environmentOf(settings, context, keptMarker(keep.directory, id)).catch((error: unknown) => {
      closeSync(kept.fd);
      throw error;
    });
    const end = await runKept(
      {
        argv: [findProgram('bash', shellPath(settings, context)) ?? '/bin/sh', '-c', command],
        ...{ env, cwd, timeoutMs, signal, ...readersOf(output) },
      },
      kept,
      keep,
    );
    onStored(forget);
    return end;
  } catch (error) {
    if (!(error instanceof HandOverError)) forget();
    throw error;
  }
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
  { directory }: KeepSettings,
  isOver: (call: Pick<ToolContext, 'threadId' | 'turnId'>) => boolean,
): Promise<void> {
  for (const kept of listKept(directory)) if (!kept.background && isOver(kept)) await endKeptCommand(directory, kept);
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
  let end: Awaited<ReturnType<typeof adoptKept>>;
  try {
    end = await adoptKept(kept, settings.keep, { signal, ...readersOf(output) });
  } finally {
    output.close();
  }
  const forget = (): void => forgetKept(settings.keep, kept);
  if (end === 'notStarted') {
    forget();
    return undefined;
  }
  onStored(forget);
  signal.throwIfAborted();
  if (end === undefined) return unknownResult(output.read());
  const { maxTimeoutMs, network } = settings;
  const facts = { timeoutMs: kept.timeoutMs ?? maxTimeoutMs, maxTimeoutMs, network, isSandboxed: false };
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
