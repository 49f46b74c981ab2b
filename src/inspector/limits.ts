/** Limits of the inspector's work in a program. */
export const limits = {
  /** Maximum number of facts of a context. */
  facts: 60,
  /** Characters of one fact and of all facts. A character takes at most six bytes, so a snapshot stays below 64 KiB. */
  factChars: 1_000,
  allChars: 10_000,
  nameChars: 100,
  /** Values read for a snapshot, which takes well below a millisecond. The time limit applies to slow code of the program, such as its mask. */
  values: 200,
  readMs: 4,
  depth: 4,
  /** Entries of one list or object, so that one value does not use up the limit for the other facts. */
  entries: 20,
  /** Limits of one fact that the user requests in full. */
  wholeChars: 256 * 1024,
  wholeValues: 20_000,
  /** Far above the time of the read, which a busy machine may interrupt. */
  wholeMs: 250,
  wholeDepth: 40,
  wholeEntries: 20_000,
  /** An object with more names is not listed again at its path, because JavaScript can list names only all at once. */
  names: 2_000,
  records: 1_024,
  endedActors: 100,
  /** Maximum number of machines with stored charts. */
  machines: 200,
  viewers: 8,
  /** Target size of an answer in characters; exceeded by at most one record. */
  answerChars: 256 * 1024,
  questionBytes: 8 * 1024,
  /** Time after which a request without new records is answered. */
  waitMs: 15_000,
} as const;
