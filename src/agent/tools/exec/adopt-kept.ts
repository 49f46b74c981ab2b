import { existsSync } from 'node:fs';
import type { ProcessIdentity } from '../../../protocol/index.ts';
import {
  endKeptCommand,
  findKeeper,
  isAlive,
  type KeptCommand,
  keptFiles,
  keptMarker,
  killGroupVerified,
  killMarked,
  ownIdentity,
  ProcessTree,
  readKept,
} from '../../../supervise/index.ts';
import { readReport } from './keeper-script.ts';
import {
  followerOf,
  HandOverError,
  type KeepSettings,
  type KeptRun,
  leavesCommand,
  noSweep,
  openOutput,
  politeMs,
  pollMs,
  takeOver,
  withReport,
} from './kept-command.ts';
import { onChange } from './output-follower.ts';
import type { CommandEnd } from './run-command.ts';

const adoptedPollMs = 100;
/** Longest time of a keeper after its report. */
const keeperEndMs = 2_000;

const beginningIsGone = '[… the beginning of the output was removed]\n';

/**
 * Waits for the end of a command that an earlier agent server has started. Passes on its output from the beginning.
 *
 * @returns undefined: its end is unknown; `notStarted`: it never ran
 * @throws HandOverError when the signal aborts with it
 */
export async function adoptKept(
  command: KeptCommand,
  keep: KeepSettings,
  { signal, onText, onSkip }: Pick<KeptRun, 'signal' | 'onText' | 'onSkip'>,
): Promise<CommandEnd | 'notStarted' | undefined> {
  const { directory } = keep;
  takeOver(directory);
  const files = keptFiles(directory, command.id);
  const marker = keptMarker(directory, command.id);
  const keeper = await findKeeper(directory, command);
  const fd = keeper === 'unknown' ? undefined : openOutput(keep, command.id);
  if (keeper === 'unknown' || fd === undefined) {
    const { hasStarted } = readReport(readKept(directory, command.id)?.lines ?? []);
    // Without its output, the command cannot be followed.
    if (typeof keeper === 'object') await endKeptCommand(directory, command);
    return keeper === 'gone' && !hasStarted && isOfThisBoot(command) ? 'notStarted' : undefined;
  }
  if (existsSync(files.cut)) onText(beginningIsGone);
  const follower = followerOf(files, fd, { onText, onSkip });
  try {
    const cause = keeper === 'gone' ? 'exited' : await keeperEnd(command, keeper, keep, signal);
    const sweep =
      keeper === 'gone' ? { ...noSweep, ended: await killMarked(marker) } : await killGroupVerified(keeper, marker);
    await follower.end();
    const lines = readKept(directory, command.id)?.lines ?? [];
    const { hasStarted, endedFor, exitCode } = readReport(lines);
    if (!hasStarted) return isOfThisBoot(command) ? 'notStarted' : undefined;
    if (exitCode === undefined && cause === 'exited' && endedFor === undefined) return undefined;
    return { ...withReport({ cause, exitCode: null, signal: null }, lines), sweep };
  } finally {
    follower.close();
  }
}

const isOfThisBoot = ({ starter }: KeptCommand): boolean =>
  starter.bootId !== '' && starter.bootId === ownIdentity().bootId;

/** Waits until the command of a keeper has ended. Ends it at its deadline, and when the signal aborts. */
export async function keeperEnd(
  { id, startedAt, timeoutMs }: KeptCommand,
  keeper: ProcessIdentity,
  keep: KeepSettings,
  signal: AbortSignal,
): Promise<CommandEnd['cause']> {
  const { directory } = keep;
  const { promise: isOver, resolve } = Promise.withResolvers<CommandEnd['cause']>();
  let last: NodeJS.Timeout | undefined;
  const check = (): void => {
    if (isAlive(keeper) === 'gone') resolve('exited');
    // The keeper itself ends right after its report.
    else if (last === undefined && readReport(readKept(directory, id)?.lines ?? []).exitCode !== undefined) {
      clearInterval(timer);
      last = setTimeout(() => resolve('exited'), keeperEndMs);
      timer = setInterval(check, pollMs);
    }
  };
  const unwatch = onChange(keptFiles(directory, id).record, check);
  let timer = setInterval(check, adoptedPollMs);
  const left = timeoutMs === null ? undefined : Math.max(0, startedAt + timeoutMs - Date.now());
  const deadline = left === undefined ? undefined : setTimeout(() => resolve('timedOut'), left);
  const onAbort = (): void => resolve('aborted');
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    check();
    const cause = await isOver;
    if (signal.aborted && leavesCommand(keep, signal)) throw new HandOverError();
    if (cause !== 'exited') await new ProcessTree(keeper, keptMarker(directory, id)).end(politeMs);
    return cause;
  } finally {
    unwatch();
    clearInterval(timer);
    clearTimeout(last);
    clearTimeout(deadline);
    signal.removeEventListener('abort', onAbort);
  }
}
