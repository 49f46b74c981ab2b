/** Every limit and pause of the providers that is not a user's setting. Units are in the names. */
export const limits = {
  /** One event of a stream; a longer one is no answer of a model. */
  eventBytes: 4 * 1_048_576,
  /** A whole answer that was not streamed, or a list of models. */
  answerBytes: 32 * 1_048_576,
  errorBytes: 65_536,
  /** Of an upstream's own words that an error repeats. */
  reasonChars: 500,
  idleMs: 120_000,
  retries: 3,
  backoffBaseMs: 500,
  backoffCapMs: 8_000,
  /** An upstream that asks for more is not waited for: the error says how long it wants. */
  retryAfterCapMs: 60_000,
  /** A connection nobody uses is closed after this time. */
  keptConnectionMs: 60_000,
  /** How long an answer that is complete may take to end its connection's use. */
  drainMs: 1_000,
} as const;
