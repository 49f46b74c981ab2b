import type { Job } from '../store/index.ts';

/** Attempts of a job and the pauses between them. */
export interface RetryPolicy {
  /** Pauses before the second, third, … attempt in milliseconds. After the last attempt the job is dead. */
  readonly pausesMs: readonly number[];
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Retry policies by kind of job. `Retry-After` of GitHub can lengthen a pause and never shortens it. */
export const retryPolicies: Readonly<Record<Job['kind'], RetryPolicy>> = {
  delivery: { pausesMs: [second, 5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute] },
  // The author of a command waits for the reply, so a late reply is useless.
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

/** Groups of kinds that share slots, so that slow jobs delay only their own group. */
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
  /** Time for running jobs to end when the backend stops; then they return to the queue. */
  stopMs: 4_000,
  /** Pause of a job that failed in an outage of the database. */
  outagePauseMs: 5_000,
  /** Attempts to report the end of a job without attempts left. */
  giveUpAttempts: 3,
  /** A lane or role without progress for this time stands still. */
  stalledMs: 10_000,
  /** Maximum random addition to a pause, as a fraction of it, so that jobs that failed together do not retry together. */
  jitter: 0.2,
  errorCharacters: 500,
  /** Latest runs searched for the one that an earlier attempt of a command dispatched. */
  searchedRuns: 20,
  /** Interval of checking the roles for due work. */
  roleTickMs: 1_000,
  /** Lease of a role. */
  roleMs: 15_000,
  /** Interval of scans for due automatic reviews without a trigger. */
  autoReviewMs: 15_000,
  cleanupMs: 3_600_000,
  /** Pauses before each check for duplicates after a write that took several attempts. */
  duplicateChecksMs: [minute, 10 * minute, hour],
  /** Retention time of events. A reader that was away longer receives a gap and must load everything again. */
  eventsMs: 7 * 24 * 3_600_000,
} as const;
