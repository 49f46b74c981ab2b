import type { PathRules } from '../paths.ts';

/** Settings of the file tools. */
export interface FileToolSettings extends PathRules {
  /** Larger files are neither read nor written. */
  readonly maxFileBytes: number;
}

/** Limits of the text that the model is shown, and of the time of a search. */
export const limits = {
  readLines: 2_000,
  readBytes: 50 * 1024,
  lineChars: 2_000,
  directoryEntries: 500,
  /** Longer texts are too much for a string. */
  editBytes: 256 * 1024 * 1024,
  imageBytes: 5 * 1024 * 1024,
  grepMatches: 100,
  grepMatchesMost: 500,
  grepLineChars: 500,
  /** Most lines around a match. */
  grepContext: 20,
  grepBytes: 50 * 1024,
  findFiles: 200,
  searchMs: 20_000,
  diffLines: 60,
  diffLineChars: 300,
  /** Longest regular expression or glob. */
  patternChars: 2_000,
} as const;
