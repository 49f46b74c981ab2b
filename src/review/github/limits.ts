/** Limits and times of all requests to GitHub. */
export interface GitHubLimits {
  /** Time of one request with its response, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Largest response, in bytes. */
  readonly answerBytes: number;
  /** Pause between the end of one write and the start of the next of an installation: GitHub asks for a second. */
  readonly writeSpacingMs: number;
  /** Longest wait for a rate limit, in seconds. For a longer one, the error names the time of the retry. */
  readonly longestWaitSeconds: number;
  /** Further attempts of a request that only reads. */
  readonly retries: number;
  /** Length of one second of back-off, in milliseconds. */
  readonly secondMs: number;
  /** Times of the search for a write of unknown outcome, in seconds: lists of GitHub lag behind. */
  readonly lookAfterSeconds: readonly number[];
  /** GitHub ends a request after 10 s: after this pause a request that was given up no longer takes effect. In seconds. */
  readonly settleSeconds: number;
  /** A token with less time left than this is not used. */
  readonly tokenMarginMs: number;
  readonly cachedTokens: number;
  /** Pull requests whose last answer is cached for an immediate second query. */
  readonly pullsKept: number;
  readonly installationCacheMs: number;
  /** Entries of one page of a list: GitHub's maximum. */
  readonly pageSize: number;
  readonly concurrentSyncs: number;
  /** Attempts to find the comments of a review that GitHub refuses. */
  readonly probes: number;
  /** Redeliveries that one poll may ask for. */
  readonly redeliveries: number;
  readonly redeliveryAttempts: number;
  /** GitHub keeps deliveries for about three days. */
  readonly deliveryAgeMs: number;
}

export const githubLimits: GitHubLimits = {
  requestTimeoutMs: 30_000,
  answerBytes: 32 * 1_024 * 1_024,
  writeSpacingMs: 1_000,
  longestWaitSeconds: 10,
  retries: 2,
  secondMs: 1_000,
  lookAfterSeconds: [0, 1, 3],
  settleSeconds: 15,
  tokenMarginMs: 5 * 60_000,
  cachedTokens: 5_000,
  pullsKept: 256,
  installationCacheMs: 60 * 60_000,
  pageSize: 100,
  concurrentSyncs: 8,
  probes: 64,
  redeliveries: 20,
  redeliveryAttempts: 5,
  deliveryAgeMs: 3 * 24 * 60 * 60_000,
};

/** GitHub takes 65 536 characters in a body; check runs 65 535. */
export const longestGitHubText = 65_000;
