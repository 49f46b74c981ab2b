/** Limits of a compaction, within a turn and on request. */
export const compactionLimits = {
  /** Part of the window that a summary may read. */
  transcriptShare: 0.4,
  /** Room for older requests of the user, word for word. */
  olderRequestTokens: 20_000,
} as const;
