/**
 * Restart accounting, apart from any machine: pure functions over numbers, in the manner of OTP's `add_restart`.
 * Times are milliseconds of one monotonic clock; where they come from is the caller's business.
 */
import { exponentialBackoffMs, jitters } from '../src/lib/browser.ts';

/** Rules, delays and limits of restarts after a process has ended without a stop request. */
export interface RestartPolicy {
  readonly restart: 'never' | 'onFailure' | 'always';
  /** More than this many failures within `withinMs` and the supervisor gives up. */
  readonly maxRestarts: number;
  readonly withinMs: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
  /** A run this long makes the next failure count as the first again. */
  readonly stableAfterMs: number;
}

/** Exit codes that are not failures: success, and death by the two polite signals as shells report them. */
const cleanExitCodes: readonly number[] = [0, 130, 143];

/** True when the policy asks for another start after this exit, intensity aside. A death by signal is a failure. */
export function wantsRestart(policy: RestartPolicy, exitCode: number | null): boolean {
  if (policy.restart === 'never') return false;
  if (policy.restart === 'always') return true;
  return exitCode === null || !cleanExitCodes.includes(exitCode);
}

/** The failures that still count at `at`, with this one added; oldest first. */
export function addFailure(failures: readonly number[], at: number, withinMs: number): readonly number[] {
  return [...failures.filter((time) => time > at - withinMs), at];
}

/** True when the failures in the window are more than the policy allows. */
export function exceedsFailureLimit(failures: readonly number[], policy: RestartPolicy): boolean {
  return failures.length > policy.maxRestarts;
}

/**
 * Delay before restart number `attempt` (from 1): doubling from the base up to the cap, then jittered over its upper
 * half, so that many workspaces that fell together do not rise together, and none returns at once.
 *
 * @param random uniform in [0, 1)
 */
export function backoffDelay(
  attempt: number,
  policy: Pick<RestartPolicy, 'backoffBaseMs' | 'backoffCapMs'>,
  random: number,
): number {
  const { backoffBaseMs: firstMs, backoffCapMs: capMs } = policy;
  return Math.round(exponentialBackoffMs(attempt - 1, { firstMs, capMs, jitter: jitters.upperHalf }, random));
}

/** One step of mulberry32: a seed in, a number in [0, 1) and the next seed out. Keeps chance out of the machines. */
export function nextRandom(seed: number): { readonly random: number; readonly seed: number } {
  const next = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(next ^ (next >>> 15), 1 | next);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return { random: ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296, seed: next };
}
