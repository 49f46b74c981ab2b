import { closeSync, existsSync, constants as fileFlags, fstatSync, openSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../../../protocol/index.ts';
import {
  type KeptCommand,
  type KeptFiles,
  keptFiles,
  keptMarker,
  keptOwner,
  killGroupVerified,
  makeKeptFile,
  markCut,
  ownIdentity,
  ownKept,
  RunningProgram,
  readIdentity,
  readKept,
  removeKept,
  type SweepReport,
  writeKeeper,
  writeKept,
} from '../../../supervise/index.ts';
import type { ToolContext } from '../../tool.ts';
import type { GitFinding } from './held-directory.ts';
import { keeperScript, readReport } from './keeper-script.ts';
import { OutputFollower } from './output-follower.ts';
import type { CommandEnd, CommandRun } from './run-command.ts';

/** Commands that outlive their agent server. */
export interface KeepSettings {
  /** See `keptDirectory`. */
  readonly directory: string;
  /** `Turns.KeepSeconds`: how long a command waits for an agent server. */
  readonly patienceSeconds: number;
  /** True: an abort leaves commands to the next agent server. Absent: only one with `HandOverError` does. */
  readonly isHandedOver?: () => boolean;
  /** Called at the end of an earlier server's command. Returns entries that were set aside in git directories. */
  readonly leave?: (command: KeptCommand) => Promise<readonly GitFinding[]>;
}

/** Whether an abort leaves a command to the next agent server. */
export const leavesCommand = ({ isHandedOver }: KeepSettings, { reason }: AbortSignal): boolean =>
  reason instanceof HandOverError || isHandedOver?.() === true;

/** Reason of an abort that leaves kept commands to the next agent server. */
export class HandOverError extends Error {
  override readonly name = 'HandOverError';

  constructor() {
    super('the agent server hands its turns over to the next one');
  }
}

export type KeptRun = Omit<CommandRun, 'marker' | 'stdin' | 'onErrorText' | 'drainMs'> & {
  /** Called when output was lost. */
  readonly onSkip: (bytes: number) => void;
  /** Descriptor that keeps the sandbox of the command open. */
  readonly line?: number | undefined;
};

/** Time between SIGTERM and SIGKILL. */
export const politeMs = 2_000;
export const drainMs = 100;
export const pollMs = 2;
export const noSweep: SweepReport = { ended: 0, remaining: [], uncertain: false };

const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDWR } = fileFlags;
const owned = new Set<string>();
const self = ownIdentity();

/** A command whose record is written. */
export interface BegunCommand {
  readonly command: KeptCommand;
  /** Descriptor of the record. */
  readonly fd: number;
}

/** Makes this server the owner of the kept commands: their keepers wait on. */
export function takeOver(directory: string): void {
  if (owned.has(directory) && existsSync(directory)) return;
  ownKept(directory);
  owned.add(directory);
}

/** Writes the record of a command that is about to start with `keptMarker(directory, id)` in its environment. */
export function beginKept(
  { directory }: KeepSettings,
  { threadId, turnId, callId }: Pick<ToolContext, 'threadId' | 'turnId' | 'callId'>,
  { id, timeoutMs, background, walls, room }: Pick<KeptCommand, 'id' | 'timeoutMs' | 'background' | 'walls' | 'room'>,
): BegunCommand {
  takeOver(directory);
  const command: KeptCommand = {
    ...{ version: 1, id, starter: self },
    ...{ threadId, turnId, callId, startedAt: Date.now(), timeoutMs },
    ...(background && { background }),
    ...(walls !== undefined && { walls }),
    ...(room && { room }),
  };
  return { command, fd: writeKept(directory, command) };
}

/** Words of a keeper around those of a command. */
export function keeperWords(
  { directory, patienceSeconds }: KeepSettings,
  { id, startedAt, timeoutMs, background }: KeptCommand,
  argv: readonly string[],
): readonly string[] {
  const deadline = timeoutMs === null ? 0 : Math.ceil((startedAt + timeoutMs) / 1_000);
  const { output, input } = keptFiles(directory, id);
  const prefix = output.slice(0, -'.out'.length);
  const words = [prefix, keptOwner(directory), String(deadline), String(patienceSeconds), background ? input : ''];
  return ['/bin/sh', '-c', keeperScript, 'oratorio-keeper', ...words, ...argv];
}

/** A keeper that was started. */
export interface StartedKeeper {
  readonly program: RunningProgram;
  /** Undefined: the system refused to start it. */
  readonly keeper: ProcessIdentity | undefined;
  /** Descriptor of the output. */
  readonly output: number;
}

/** Starts a command below its keeper. Closes the descriptor of the record. */
export function startKeeper(
  {
    argv,
    cwd,
    env,
    timeoutMs,
    signal,
    line,
  }: Pick<CommandRun, 'argv' | 'cwd' | 'env' | 'signal'> & {
    readonly timeoutMs?: number;
    /** Descriptor that keeps the sandbox of the command open. */
    readonly line?: number | undefined;
  },
  { command, fd }: BegunCommand,
  keep: KeepSettings,
): StartedKeeper {
  const [shell = '', ...args] = keeperWords(keep, command, argv);
  const files = keptFiles(keep.directory, command.id);
  const output = makeKeptFile(files.output);
  try {
    if (command.walls !== undefined) closeSync(makeKeptFile(files.errors));
    const program = new RunningProgram({
      ...{ program: shell, args, cwd, env, timeoutMs, signal, stdout: output, stderr: fd, seesOurEnd: true, line },
      ...{ graceMs: politeMs, giveUpMs: defaults.supervise.killVerifyMs },
    });
    const keeper = identityOf(program.pid);
    if (keeper) writeKeeper(fd, keeper);
    return { program, keeper, output };
  } catch (error) {
    closeSync(output);
    throw error;
  } finally {
    closeSync(fd);
  }
}

/**
 * Runs a command as `runCommand` does, below a keeper: after the death of this process `adoptKept` continues. Its files stay until
 * `removeKept`.
 *
 * @throws HandOverError when the signal aborts with it: the command runs on
 */
export async function runKept(run: KeptRun, begun: BegunCommand, keep: KeepSettings): Promise<CommandEnd> {
  const { directory } = keep;
  const { id } = begun.command;
  if (run.signal.aborted) {
    closeSync(begun.fd);
    throw leavesCommand(keep, run.signal) ? new HandOverError() : run.signal.reason;
  }
  const stopping = new AbortController();
  const { program, keeper, output } = startKeeper({ ...run, signal: stopping.signal }, begun, keep);
  const follower = followerOf(keptFiles(directory, id), output, run);
  try {
    const end = await untilAborted(program, stopping, run.signal, keep);
    if (!keeper) return { ...end, sweep: noSweep };
    for (const late = performance.now() + drainMs; program.hasDescendants && performance.now() < late; )
      await sleep(pollMs);
    const sweep = await killGroupVerified(keeper, keptMarker(directory, id));
    program.killDescendants();
    await follower.end();
    return { ...withReport(end, readKept(directory, id)?.lines ?? []), sweep };
  } finally {
    follower.close();
  }
}

/** End of a program. An abort with `HandOverError` lets it run on, every other one stops it. */
async function untilAborted(
  program: RunningProgram,
  stopping: AbortController,
  signal: AbortSignal,
  keep: KeepSettings,
) {
  const handedOver = Promise.withResolvers<never>();
  const onAbort = (): void => {
    if (leavesCommand(keep, signal)) {
      program.release();
      handedOver.reject(new HandOverError());
    } else stopping.abort();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([program.ended, handedOver.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Follows the output of a kept command. */
export function followerOf(
  files: KeptFiles,
  fd: number,
  { onText, onSkip }: Pick<KeptRun, 'onText' | 'onSkip'>,
): OutputFollower {
  return new OutputFollower({ path: files.output, fd, onText, onSkip, onCut: () => markCut(files) });
}

/** End of a keeper, with the exit of its command. */
export function withReport(end: Omit<CommandEnd, 'sweep'>, lines: readonly string[]): Omit<CommandEnd, 'sweep'> {
  const { endedFor, exitCode, signal } = readReport(lines);
  const watched = endedFor === 'abandoned' ? 'stopped' : endedFor;
  const cause = end.cause === 'exited' ? (watched ?? end.cause) : end.cause;
  if (exitCode === undefined) return { ...end, cause, exitCode: null };
  return { cause, exitCode, signal: nameOf(signal) };
}

/** Name of a signal. */
function nameOf(signal: number | undefined): NodeJS.Signals | null {
  const known = Object.entries(constants.signals).find(([, number]) => number === signal);
  return (known?.[0] as NodeJS.Signals | undefined) ?? null;
}

/** Identity of a keeper that was just started. */
function identityOf(pid: number | undefined): ProcessIdentity | undefined {
  if (pid === undefined) return undefined;
  const identity = readIdentity(pid);
  return typeof identity === 'string' ? { ...ownIdentity(), pid, startedTicks: '' } : identity;
}

/** Opens the output of a command that an earlier server started. Undefined: the file is missing, or is not a regular file. */
export function openOutput({ directory }: KeepSettings, id: string): number | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(keptFiles(directory, id).output, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (fstatSync(fd).isFile()) return fd;
  } catch {
    // Closed below.
  }
  if (fd !== undefined) closeSync(fd);
  return undefined;
}

/** Removes the files of a command whose result is stored. */
export const forgetKept = ({ directory }: KeepSettings, { id }: KeptCommand): void => removeKept(directory, id);
