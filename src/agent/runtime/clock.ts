import { setTimeout as sleep } from 'node:timers/promises';

let at = 0;
let text = '';

/** Now, as the protocol writes times. One turn asks a dozen times within a millisecond, and to write a date is not cheap. */
export function timestamp(): string {
  const now = Date.now();
  if (now !== at) {
    at = now;
    text = new Date(now).toISOString();
  }
  return text;
}

/** Pause between two readings of the clock, in milliseconds. */
const tickMs = 60_000;

/** Clocks and timer of a wait. */
export interface WaitClock {
  /** Milliseconds since the epoch, by the wall clock. It runs while the machine sleeps, and may be set. */
  readonly now: () => number;
  /** Milliseconds by a clock that is never set, and stops while the machine sleeps. */
  readonly passed: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

export const systemClock: WaitClock = {
  now: Date.now,
  passed: () => performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};

/**
 * Resolves at a wall-clock time, with at most one timer a minute. Setting the clock back does not lengthen the wait.
 *
 * @throws the reason of `signal` when it aborts
 */
export async function waitUntil(until: number, signal: AbortSignal, clock: WaitClock): Promise<void> {
  const ends = clock.passed() + until - clock.now();
  for (;;) {
    const rest = Math.min(until - clock.now(), ends - clock.passed());
    signal.throwIfAborted();
    if (rest <= 0) return;
    await clock.sleep(rest < 2 * tickMs ? rest : tickMs, signal);
  }
}
