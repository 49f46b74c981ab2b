/** Rows of names for each size class. */
export interface Places {
  readonly laptop: readonly string[];
  readonly phone: readonly string[];
  readonly wide?: readonly string[];
}
