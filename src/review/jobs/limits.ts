import type { Job } from '../store/index.ts';

/** How often work is tried, and what lies in between. */
export interface RetryPolicy {
  /** Before the second attempt, the third, …; after the last of them it is given up. Milliseconds. */
  readonly pausesMs: readonly number[];
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** The back-off table. What GitHub asks for (`Retry-After`) lengthens a pause and never shortens it. */
export const retryPolicies: Readonly<Record<Job['kind'], RetryPolicy>> = {
  delivery: { pausesMs: [second, 5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute] },
  // Somebody waits for the answer: late is no better than never.
  command: { pausesMs: [5 * second, 30 * second, 2 * minute] },
  sync: { pausesMs: [30 * second, 2 * minute] },
  write: {
    pausesMs: [
      second,
      5 * second,
      30 * second,
      2 * minute,
      10 * minute,
      30 * minute,
      60 * minute,
      3 * hour,
      8 * hour,
      12 * hour,
    ],
  },
  cleanup: { pausesMs: [minute, 10 * minute] },
  reconcile: { pausesMs: [30 * second, 2 * minute] },
};

/** Jobs that share slots, so that none of the others waits for what is slow. */
export const lanes: readonly { readonly kinds: readonly Job['kind'][]; readonly concurrency: number }[] = [
  { kinds: ['delivery', 'command'], concurrency: 16 },
  { kinds: ['write'], concurrency: 8 },
  { kinds: ['sync'], concurrency: 8 },
  { kinds: ['reconcile', 'cleanup'], concurrency: 1 },
];

/** Limits and times of the job worker. Units are in the names. */
export const limits = {
  leaseMs: 60_000,
  renewMs: 20_000,
  /** Work that is under way when the backend stops is waited for so long, then given back. */
  stopMs: 10_000,
  /** Part of a pause that is left to chance, so that what failed together does not come back together. */
  jitter: 0.2,
  errorCharacters: 500,
  /** Reviews among which that of a command is looked for which was begun before. */
  runsLookedThrough: 20,
  /** How often due work of the roles is looked for. */
  roleTickMs: 1_000,
  /** A role is held so long without a word of its holder. */
  roleMs: 15_000,
  /** Between two looks for pull requests that are due for a review, whatever has happened. */
  autoReviewMs: 15_000,
  cleanupMs: 3_600_000,
  /** After a write that took several attempts the source is checked for duplicates, each time so long after the last. */
  duplicateChecksMs: [minute, 10 * minute, hour],
  /** Events of the stream are kept so long: a reader that was away longer looks at everything again. */
  eventsMs: 7 * 24 * 3_600_000,
} as const;
