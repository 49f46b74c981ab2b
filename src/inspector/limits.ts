/** Bounds of the inspector's work in a program. */
export const limits = {
  /** Facts of a context. */
  facts: 60,
  /** Characters of a fact and of all facts: six bytes each at most, so that a snapshot stays below 64 KiB. */
  factChars: 1_000,
  allChars: 10_000,
  nameChars: 100,
  /** Values read for a snapshot: well below a millisecond. The time ends code of the program that is slow, as its mask. */
  values: 200,
  readMs: 4,
  depth: 4,
  /** Entries of a list or an object, so that the other facts are read too. */
  entries: 20,
  /** Bounds of one fact that the user asks for. */
  wholeChars: 256 * 1024,
  wholeValues: 20_000,
  wholeMs: 50,
  wholeDepth: 40,
  wholeEntries: 20_000,
  /** An object with more names is not listed again at its place: names cannot be listed in parts. */
  names: 2_000,
  records: 1_024,
  endedActors: 100,
  /** Machines whose charts are held. */
  machines: 200,
  viewers: 8,
  /** Characters of an answer, passed by at most one record. */
  answerChars: 256 * 1024,
  questionBytes: 8 * 1024,
  /** An answer without news comes after this time. */
  waitMs: 15_000,
} as const;
