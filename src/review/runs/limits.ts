/** Times and limits of the runs, in one place. Milliseconds, unless it says otherwise. What people decide is in the settings. */
export const runLimits = {
  /** A run whose process is gone is taken up after this time. */
  leaseMs: 30_000,
  /** The lease is renewed, and the deadlines are looked at, this often. */
  watchMs: 5_000,
  /** A run that waits for its writes makes room after this time. */
  writesMs: 20_000,
  /** And looks again after this. */
  writesPauseMs: 15_000,
  /** For a step that was told to stop. */
  stopMs: 10_000,
  /** What a review stands on may be away for so long before the review is given up. */
  outageMs: 24 * 3_600_000,
  /** The head may move on while it is fetched: it is read anew this many times. */
  targetMoves: 3,
  /** What was read of a pull request so lately need not be read again before a review begins. */
  pullAgeMs: 2_000,
  /** Of instructions from one place; characters. */
  instructions: 20_000,
  /** Of what is kept of an error; characters. */
  message: 500,
  /** Repositories whose runs are preferred, because their objects are at hand. */
  affinity: 16,
  /** Items that are looked at together for automatic reviews. */
  autoPage: 100,
  /** Drafts of a pull request that are looked through for what somebody has dismissed. */
  earlierDrafts: 50,
  /** Lines of the diff that are kept before and after those of a finding. */
  hunkContext: 12,
  /** Of them all, per finding; bytes. */
  hunkBytes: 4_096,
  /** Of one of them; characters. */
  hunkLine: 1_000,
  /** A draft that a person edits while it is changed here is read again this often. */
  draftTries: 5,
} as const;
export type RunTimes = { readonly [K in keyof typeof runLimits]: number };
