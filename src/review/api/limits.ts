/** Limits of the API. Units are in the names. */
export const limits = {
  bodyBytes: 262_144,
  deadlineMs: 30_000,
  rowsPerPage: 50,
  maxRowsPerPage: 200,
  /** Events kept in memory for readers who come back. */
  ringEvents: 2_048,
  /** Events read from the database at once. */
  eventsAtOnce: 500,
  /** A reader who is further behind is told that there is a gap. */
  maxReplay: 10_000,
  /** The database has so long to answer before it counts as not reachable, and the answer holds so long. */
  healthMs: 2_000,
  healthCacheMs: 500,
} as const;
