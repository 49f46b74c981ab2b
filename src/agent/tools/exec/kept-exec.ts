/** Exec with commands that outlive the agent server. Not for sandboxed ones: see `docs/tools.md`. */
import { randomUUID } from 'node:crypto';
import { findProgram } from '../../../lib/index.ts';
import { type KeptCommand, keptMarker, listKept, searchPathOutside } from '../../../supervise/index.ts';
import type { ToolContext, ToolResult } from '../../tool.ts';
import type { OutputFiles } from '../output-files.ts';
import { adoptKept } from './adopt-kept.ts';
import { CommandOutput } from './command-output.ts';
import { beginKept, forgetKept, HandOver, type KeepSettings, runKept } from './kept-command.ts';
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
  const env = await environmentOf(settings, context, keptMarker(keep.directory, id));
  const kept = beginKept(keep, context, { id, timeoutMs });
  const forget = (): void => forgetKept(keep, kept.command);
  try {
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
    if (!(error instanceof HandOver)) forget();
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

/** Readers of the call of an adopted command. */
export interface Adoption extends Pick<ToolContext, 'signal' | 'onOutput' | 'onStored'> {
  /** Characters of the output that were emitted before: live output continues after them. */
  readonly shownChars: number;
}

/** Outcome of an adopted command. Unknown: its keeper ended first; with the output until then. */
export type AdoptedResult =
  | { readonly kind: 'ended'; readonly result: ToolResult }
  | { readonly kind: 'notStarted' }
  | { readonly kind: 'unknown'; readonly output: string };

/**
 * Waits for the end of a command that an earlier agent server has started.
 *
 * @throws the reason of an abort of the signal
 */
export async function adoptExec(
  kept: KeptCommand,
  settings: KeptExecSettings,
  { signal, onOutput, onStored = (work) => work(), shownChars }: Adoption,
): Promise<AdoptedResult> {
  const output = outputOf(settings, { threadId: kept.threadId, onOutput: after(shownChars, onOutput) });
  let end: Awaited<ReturnType<typeof adoptKept>>;
  try {
    end = await adoptKept(kept, settings.keep, { signal, ...readersOf(output) });
  } finally {
    output.close();
  }
  onStored(() => forgetKept(settings.keep, kept));
  signal.throwIfAborted();
  if (end === 'notStarted') return { kind: end };
  if (end === undefined) return { kind: 'unknown', output: output.read() };
  const { maxTimeoutMs, network } = settings;
  const facts = { timeoutMs: kept.timeoutMs ?? maxTimeoutMs, maxTimeoutMs, network, isSandboxed: false };
  return { kind: 'ended', result: reportEnd(end, output.read(), facts) };
}

const readersOf = (output: CommandOutput) => ({
  onText: (text: string) => output.push(text),
  onSkip: (bytes: number) => output.skip(bytes),
});

/** Leaves out the first characters of a text that comes in pieces. */
function after(characters: number, emit: (text: string) => void): (text: string) => void {
  let left = characters;
  return (text) => {
    const rest = text.slice(left);
    left -= Math.min(left, text.length);
    if (rest !== '') emit(rest);
  };
}
