import { setTimeout as sleep } from 'node:timers/promises';
import { type Lock, monotonicMs, waitForLock } from '../../supervise/index.ts';
import { GitError } from './error.ts';

/** Waiting callers of this process by lock file. Two instances in one process must not open one file: see `acquireLock`. */
const queues = new Map<string, Promise<void>>();

export interface HoldOptions {
  /** Longest wait. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Does `work` while it holds `file`, alone among all callers of this process and all processes.
 * @throws GitError `gitTimedOut` when it stays held, LockError when the file cannot be used, the reason of an aborted signal
 */
export async function holding<T>(file: string, options: HoldOptions, work: () => Promise<T>): Promise<T> {
  const deadline = monotonicMs() + options.waitMs;
  const leave = await enterQueue(file, deadline, options.signal);
  try {
    const lock = await takeLock(file, deadline, options.signal);
    try {
      return await work();
    } finally {
      lock.release();
    }
  } finally {
    leave();
  }
}

/** Resolves when it is our turn, with a function that ends the turn. */
async function enterQueue(file: string, deadline: number, signal: AbortSignal | undefined): Promise<() => void> {
  const before = queues.get(file) ?? Promise.resolve();
  const { promise: turn, resolve: endTurn } = Promise.withResolvers<void>();
  const tail = before.then(() => turn);
  queues.set(file, tail);
  const leave = () => {
    endTurn();
    if (queues.get(file) === tail) queues.delete(file);
  };
  try {
    await inTime(before, deadline, signal);
    return leave;
  } catch (error) {
    endTurn();
    throw error;
  }
}

async function inTime(turn: Promise<void>, deadline: number, signal: AbortSignal | undefined): Promise<void> {
  const stop = new AbortController();
  const signals = signal ? AbortSignal.any([stop.signal, signal]) : stop.signal;
  const late = sleep(Math.max(0, deadline - monotonicMs()), 'late' as const, { signal: signals });
  try {
    if ((await Promise.race([turn, late])) === 'late') throw stillHeld();
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    late.catch(() => {});
    stop.abort();
  }
}

async function takeLock(file: string, deadline: number, signal: AbortSignal | undefined): Promise<Lock> {
  const lock = await waitForLock(file, { waitMs: deadline - monotonicMs(), signal });
  if (lock === 'held') throw stillHeld();
  return lock;
}

function stillHeld(): GitError {
  return new GitError('gitTimedOut', 'Another run has worked on the same repository for too long', {
    isRetryable: true,
  });
}
