/** Times and limits of review runs that are not settings; milliseconds unless noted. */
export const runLimits = {
  /** Another process takes over a run this long after the last renewal of its lease. */
  leaseMs: 30_000,
  /** Interval of renewing the lease and checking the deadlines. */
  watchMs: 5_000,
  /** A run that waits for its writes returns to the queue after this time. */
  writesMs: 20_000,
  /** Pause before such a run checks its writes again. */
  writesPauseMs: 15_000,
  /** Time for an aborted step to end. */
  stopMs: 10_000,
  /** A run fails after an outage of a dependency of this length. */
  outageMs: 24 * 3_600_000,
  /** Times that a pull request is read again when its head moves during the fetch. */
  targetMoves: 3,
  /** Maximum age of pull request facts at the start of a review. */
  pullAgeMs: 2_000,
  /** Maximum length of the instructions from one file or setting, in characters. */
  instructions: 20_000,
  /** Maximum length of a stored error message, in characters. */
  message: 500,
  /** Number of repositories whose runs are preferred, because their objects are fetched already. */
  affinity: 16,
  /** Items per page of a scan for automatic reviews. */
  autoPage: 100,
  /** Published drafts of a pull request that are searched for dismissed findings. */
  earlierDrafts: 50,
  /** Earlier heads whose difference from the present head is read, to find the present places of earlier findings. */
  earlierHeads: 10,
  /** Diff lines saved before and after those of a finding. */
  hunkContext: 12,
  /** Maximum size of the diff lines of a finding, in bytes. */
  hunkBytes: 4_096,
  /** Maximum length of one diff line, in characters. */
  hunkLine: 1_000,
  /** Attempts to change a draft that users edit at the same time. */
  draftTries: 5,
} as const;
export type RunTimes = { readonly [K in keyof typeof runLimits]: number };
