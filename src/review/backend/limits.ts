/** Times of a backend, in milliseconds. A stop takes less than the ten seconds that composition tools grant. */
export const limits = {
  /** All parts; after this time each part left gets `leastCloseMs`. */
  stopMs: 8_500,
  leastCloseMs: 100,
  /** One part without a limit of its own. */
  closeMs: 1_000,
  /** Listener, streams and requests in flight. */
  serverMs: 2_000,
  /** Announcement of the end on the event stream. */
  announceMs: 500,
  /** Jobs and reviews: they end, or return to the queue. */
  workMs: 5_500,
  /** Connections of the database. */
  storeMs: 1_500,
  /** Work without progress for this time stands still. */
  stalledMs: 10_000,
} as const;
