import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, watch } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../../../protocol/index.ts';
import {
  findKeeper,
  isAlive,
  type KeptCommand,
  type KeptFiles,
  keptFiles,
  keptMarker,
  keptOwner,
  killGroupVerified,
  killMarked,
  makeKeptFile,
  markCut,
  ownIdentity,
  ownKept,
  ProcessTree,
  RunningProgram,
  readIdentity,
  removeKept,
  type SweepReport,
  writeKept,
} from '../../../supervise/index.ts';
import type { ToolContext } from '../../tool.ts';
import { keeperScript, readReport } from './keeper-script.ts';
import { OutputFollower } from './output-follower.ts';
import type { CommandEnd, CommandRun } from './run-command.ts';

/** Commands that outlive their agent server. */
export interface KeepSettings {
  /** See `keptDirectory`. */
  readonly directory: string;
  /** `Turns.KeepSeconds`: how long a command waits for an agent server. */
  readonly patienceSeconds: number;
}

/** Reason of an abort that leaves kept commands to the next agent server. */
export class HandOver extends Error {
  override readonly name = 'HandOver';

  constructor() {
    super('the agent server hands its turns over to the next one');
  }
}

type KeptRun = Omit<CommandRun, 'marker' | 'stdin' | 'onErrorText' | 'drainMs'> & {
  /** Called when output was lost. */
  readonly onSkip: (bytes: number) => void;
};

/** Time between SIGTERM and SIGKILL. */
const politeMs = 2_000;
const drainMs = 100;
const pollMs = 2;
const adoptedPollMs = 100;
/** Longest time of a keeper after its report. */
const keeperEndMs = 2_000;

const beginningIsGone = '[… the beginning of the output was removed]\n';
const noSweep: SweepReport = { ended: 0, remaining: [], uncertain: false };

const owned = new Set<string>();

/** Writes the record of a command that is about to start. @returns the record, with the marker for its environment */
export function beginKept(
  { directory }: KeepSettings,
  { threadId, turnId, callId }: Pick<ToolContext, 'threadId' | 'turnId' | 'callId'>,
  { timeoutMs, background }: Pick<KeptCommand, 'timeoutMs' | 'background'>,
): { readonly command: KeptCommand; readonly marker: string } {
  if (!owned.has(directory)) ownKept(directory);
  owned.add(directory);
  const command: KeptCommand = {
    ...{ version: 1, id: randomUUID(), starter: ownIdentity(), keeper: null },
    ...{ threadId, turnId, callId, startedAt: Date.now(), timeoutMs },
    ...(background && { background }),
  };
  writeKept(directory, command);
  return { command, marker: keptMarker(directory, command.id) };
}

/** Words of a keeper around those of a command. */
export function keeperWords(
  { directory, patienceSeconds }: KeepSettings,
  { id, startedAt, timeoutMs }: KeptCommand,
  argv: readonly string[],
): readonly string[] {
  const deadline = timeoutMs === null ? 0 : Math.ceil((startedAt + timeoutMs) / 1_000);
  const prefix = keptFiles(directory, id).output.slice(0, -'.out'.length);
  const words = [prefix, keptOwner(directory), String(deadline), String(patienceSeconds)];
  return ['/bin/sh', '-c', keeperScript, 'oratorio-keeper', ...words, ...argv];
}

/**
 * Runs a command as `runCommand` does, below a keeper: after the death of this process `adoptKept` continues. Its files stay until
 * `removeKept`.
 *
 * @param command from `beginKept`
 * @throws HandOver when the signal aborts with it: the command runs on
 */
export async function runKept(run: KeptRun, command: KeptCommand, keep: KeepSettings): Promise<CommandEnd> {
  const { cwd, env, timeoutMs, signal } = run;
  const { directory } = keep;
  const files = keptFiles(directory, command.id);
  const [shell = '', ...args] = keeperWords(keep, command, run.argv);
  const output = makeKeptFile(files.output);
  const exit = makeKeptFile(files.exit);
  const stopping = new AbortController();
  let program: RunningProgram;
  try {
    signal.throwIfAborted();
    program = new RunningProgram({
      ...{
        program: shell,
        args,
        cwd,
        env,
        timeoutMs,
        signal: stopping.signal,
        stdout: output,
        stderr: exit,
        seesOurEnd: true,
      },
      ...{ graceMs: politeMs, giveUpMs: defaults.supervise.killVerifyMs },
    });
  } catch (error) {
    closeSync(output);
    throw error;
  } finally {
    closeSync(exit);
  }
  const keeper = identityOf(program.pid);
  if (keeper) writeKept(directory, { ...command, keeper });
  const follower = followerOf(files, output, run);
  try {
    const end = await untilAborted(program, stopping, signal);
    if (!keeper) return { ...end, sweep: noSweep };
    for (const late = performance.now() + drainMs; program.hasDescendants && performance.now() < late; )
      await sleep(pollMs);
    const sweep = await killGroupVerified(keeper, keptMarker(directory, command.id));
    program.killDescendants();
    await follower.end();
    return { ...withReport(end, readFileSync(files.exit, 'utf8')), sweep };
  } finally {
    follower.close();
  }
}

/** End of a program. An abort with `HandOver` lets it run on, every other one stops it. */
async function untilAborted(program: RunningProgram, stopping: AbortController, signal: AbortSignal) {
  const handedOver = Promise.withResolvers<never>();
  const onAbort = (): void => {
    if (signal.reason instanceof HandOver) {
      program.release();
      handedOver.reject(signal.reason);
    } else stopping.abort();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([program.ended, handedOver.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Waits for the end of a command that an earlier agent server has started. Passes on its output from the beginning.
 *
 * @returns undefined: its end is unknown; `notStarted`: it never ran
 * @throws HandOver when the signal aborts with it
 */
export async function adoptKept(
  command: KeptCommand,
  keep: KeepSettings,
  { signal, onText, onSkip }: Pick<KeptRun, 'signal' | 'onText' | 'onSkip'>,
): Promise<CommandEnd | 'notStarted' | undefined> {
  const { directory } = keep;
  const files = keptFiles(directory, command.id);
  const marker = keptMarker(directory, command.id);
  const keeper = await findKeeper(directory, command);
  if (keeper === 'unknown' || !existsSync(files.exit))
    return keeper === 'gone' && isOfThisBoot(command) ? 'notStarted' : undefined;
  if (existsSync(files.cut)) onText(beginningIsGone);
  const follower = followerOf(files, openSync(files.output, 'r+'), { onText, onSkip });
  try {
    const cause = keeper === 'gone' ? 'exited' : await adoptedEnd(command, keeper, files.exit, marker, signal);
    const sweep =
      keeper === 'gone' ? { ...noSweep, ended: await killMarked(marker) } : await killGroupVerified(keeper, marker);
    await follower.end();
    const text = readFileSync(files.exit, 'utf8');
    const { hasStarted, endedFor, exitCode } = readReport(text);
    if (!hasStarted) return isOfThisBoot(command) ? 'notStarted' : undefined;
    if (exitCode === undefined && cause === 'exited' && endedFor === undefined) return undefined;
    return { ...withReport({ cause, exitCode: null, signal: null }, text), sweep };
  } finally {
    follower.close();
  }
}

const isOfThisBoot = ({ starter }: KeptCommand): boolean =>
  starter.bootId !== '' && starter.bootId === ownIdentity().bootId;

/** Waits until an adopted command has ended. Ends it at its deadline, and when the signal aborts. */
async function adoptedEnd(
  { startedAt, timeoutMs }: KeptCommand,
  keeper: ProcessIdentity,
  exit: string,
  marker: string,
  signal: AbortSignal,
): Promise<CommandEnd['cause']> {
  const { promise: isOver, resolve } = Promise.withResolvers<CommandEnd['cause']>();
  let last: NodeJS.Timeout | undefined;
  const check = (): void => {
    if (isAlive(keeper) === 'gone') resolve('exited');
    // The keeper itself ends right after its report.
    else if (last === undefined && readReport(readFileSync(exit, 'utf8')).exitCode !== undefined) {
      clearInterval(timer);
      last = setTimeout(() => resolve('exited'), keeperEndMs);
      timer = setInterval(check, pollMs);
    }
  };
  const watcher = watch(exit, { persistent: false }, check).on('error', () => watcher.close());
  let timer = setInterval(check, adoptedPollMs);
  const left = timeoutMs === null ? undefined : Math.max(0, startedAt + timeoutMs - Date.now());
  const deadline = left === undefined ? undefined : setTimeout(() => resolve('timedOut'), left);
  const onAbort = (): void => resolve('aborted');
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    check();
    const cause = await isOver;
    if (signal.reason instanceof HandOver) throw signal.reason;
    if (cause !== 'exited') await new ProcessTree(keeper, marker).end(politeMs);
    return cause;
  } finally {
    watcher.close();
    clearInterval(timer);
    clearTimeout(last);
    clearTimeout(deadline);
    signal.removeEventListener('abort', onAbort);
  }
}

function followerOf(
  files: KeptFiles,
  fd: number,
  { onText, onSkip }: Pick<KeptRun, 'onText' | 'onSkip'>,
): OutputFollower {
  return new OutputFollower({ path: files.output, fd, onText, onSkip, onCut: () => markCut(files) });
}

/** End of a keeper, with the exit of its command. */
function withReport(end: Omit<CommandEnd, 'sweep'>, text: string): Omit<CommandEnd, 'sweep'> {
  const { endedFor, exitCode, signal } = readReport(text);
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

/** Removes the files of a command whose result is stored. */
export const forgetKept = ({ directory }: KeepSettings, { id }: KeptCommand): void => removeKept(directory, id);
