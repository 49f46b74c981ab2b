/** Limits of the API; the names contain the units. */
export const limits = {
  bodyBytes: 262_144,
  deadlineMs: 30_000,
  rowsPerPage: 50,
  maxRowsPerPage: 200,
  /** Events in memory for readers that reconnect. */
  ringEvents: 2_048,
  /** Events per read from the database. */
  eventsAtOnce: 500,
  /** A reader that missed more events receives a gap. */
  maxReplay: 10_000,
  /** Time for the database to respond to a health check. */
  healthMs: 2_000,
  /** Time for which the result of a health check is reused. */
  healthCacheMs: 500,
  /** Interval of the writes of health checks. */
  healthWriteMs: 3_000,
} as const;
