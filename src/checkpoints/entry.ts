import type { BytePath } from './byte-path.ts';
import { maxListedPaths } from './limits.ts';

/** Reason why an entry is in no checkpoint. */
export type SkipReason =
  | 'tooLarge'
  | 'ignoredTooLarge'
  | 'unreadable'
  | 'special'
  | 'otherFileSystem'
  | 'changing'
  | 'overLimit'
  | 'repository';

/** Kind of an entry; `skipped` exists and is not covered. */
export type EntryKind = 'file' | 'directory' | 'link' | 'skipped';

/** Content of a checkpoint for one path. */
export interface PathEntry {
  readonly kind: EntryKind;
  /** Permissions; 0 for links. */
  readonly mode: number;
  readonly size: number;
  /** SHA-256 of a file's content, in hexadecimal digits; for a long file, the SHA-256 of the hashes of its pieces. */
  readonly hash: string | null;
  /** Target of a link as a byte text; reason of a skipped entry. */
  readonly target: string | null;
}

/** Facts of an entry that show a later scan that it is unchanged. */
export interface Stamp {
  readonly mtime: number;
  /** Null: too young to prove anything. */
  readonly ctime: number | null;
  readonly ino: number;
}

export interface StampedEntry extends PathEntry, Stamp {
  readonly path: BytePath;
}

/** An entry that no checkpoint covers, for clients. */
export interface NotCovered {
  readonly path: string;
  readonly reason: SkipReason;
  readonly size: number;
}

/** First entries of a list, for clients. */
export const firstOf = <T>(all: readonly T[]): readonly T[] => all.slice(0, maxListedPaths);

/** Entries that no checkpoint covers, bounded for clients. */
export interface Uncovered {
  /** The first of them, by path. */
  readonly notCovered: readonly NotCovered[];
  readonly notCoveredTotal: number;
}

export const uncoveredOf = (all: readonly NotCovered[]): Uncovered => ({
  notCovered: firstOf(all),
  notCoveredTotal: all.length,
});

/** The repository of a directory, as an entry that no checkpoint covers. */
export const repositoryNotCovered = (directory: string): NotCovered => ({
  path: `${directory}/.git`,
  reason: 'repository',
  size: 0,
});

/** Whether two checkpoints agree about a path; undefined: nothing is there. */
export function isSame(a: PathEntry | undefined, b: PathEntry | undefined): boolean {
  if (!a || !b) return a === b;
  if (a.kind !== b.kind || a.mode !== b.mode || a.target !== b.target) return false;
  return a.kind === 'skipped' ? a.size === b.size : a.hash === b.hash;
}
