import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialBackoffMs, jitters } from '../lib/index.ts';
import { monotonicMs } from './clock.ts';
import { acquireLock, type Lock, type LockOptions, probeLock } from './lock.ts';

export interface LockWait extends LockOptions {
  /** Longest wait, in milliseconds; 0: one attempt. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Called once, before the first wait. */
  readonly onWait?: () => void;
}

const poll = { firstMs: 10, capMs: 500, jitter: jitters.none } as const;

/**
 * Acquires the lock `file`, waiting while another process holds it. No two calls of one process may wait for one file: see
 * `acquireLock`.
 *
 * @returns `held` when another process holds it for longer than `waitMs`
 * @throws LockError the file cannot be used; the reason of the signal
 */
export async function waitForLock(
  file: string,
  { waitMs, signal, onWait, ...options }: LockWait,
): Promise<Lock | 'held'> {
  const deadline = monotonicMs() + waitMs;
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted();
    // A probe does not block; an attempt to acquire a held lock does, for a while.
    const lock = probeLock(file, options) === 'held' ? 'held' : acquireLock(file, options);
    const left = deadline - monotonicMs();
    if (lock !== 'held' || left <= 0) return lock;
    if (attempt === 0) onWait?.();
    await sleep(Math.min(exponentialBackoffMs(attempt, poll, 0), left), undefined, signal && { signal }).catch(() =>
      signal?.throwIfAborted(),
    );
  }
}
