/** Exponential back-off: the pause doubles with each failure up to a cap, then a random part of it is taken. */
export interface Backoff {
  /** Full pause after the first failure, in milliseconds. */
  readonly firstMs: number;
  /** Longest full pause, in milliseconds. Default: no cap. */
  readonly capMs?: number;
  /** Part of the full pause that is waited: uniform between the two factors. */
  readonly jitter: Jitter;
}

export type Jitter = readonly [from: number, to: number];

/**
 * Jitter by name. Clients that failed together must not return together.
 *
 * - `none`: always the full pause.
 * - `full`: from no pause to the full pause.
 * - `upperHalf`: at least half of the full pause, so that no client returns at once.
 * - `upperQuarter`: at least three quarters of it.
 * - `quarterAround`, `halfAround`: up to a quarter or a half shorter or longer than the full pause.
 */
export const jitters = {
  none: [1, 1],
  full: [0, 1],
  upperHalf: [0.5, 1],
  upperQuarter: [0.75, 1],
  quarterAround: [0.75, 1.25],
  halfAround: [0.5, 1.5],
} as const satisfies Readonly<Record<string, Jitter>>;

/** Doublings after which a pause grows no further: 2³⁰ ms are twelve days. */
const maxDoublings = 30;

/**
 * Returns the pause after a failure, in milliseconds, not rounded.
 *
 * @param failures failures in a row before this one, from 0
 * @param random uniform in [0, 1)
 * @example exponentialBackoffMs(2, { firstMs: 500, capMs: 30_000, jitter: jitters.none }, 0) // 2000
 */
export function exponentialBackoffMs(failures: number, backoff: Backoff, random: number): number {
  const { firstMs, capMs = Number.POSITIVE_INFINITY, jitter } = backoff;
  const full = Math.min(capMs, firstMs * 2 ** Math.min(failures, maxDoublings));
  const [from, to] = jitter;
  return full * (from + random * (to - from));
}
