/** One line of a hunk. A removed line has no place in the new file, an added one none in the old. */
export interface DiffLine {
  readonly kind: 'context' | 'added' | 'removed';
  /** Text without the mark in front and without the line end; a carriage return that belongs to the line stays. */
  readonly text: string;
  readonly oldLine: number | null;
  readonly newLine: number | null;
}

export interface DiffHunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly DiffLine[];
}

/** One file of a unified diff. */
export interface DiffFile {
  /** Current path; the last path of a deleted file. */
  readonly path: string;
  /** Path before the change, when it differs. */
  readonly oldPath: string | null;
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed';
  readonly isBinary: boolean;
  /** Whether the entry is a link to another repository, which has nothing to read. */
  readonly isSubmodule: boolean;
  readonly isSymlink: boolean;
  readonly hunks: readonly DiffHunk[];
}

/** The side of a diff that a comment is on (GitHub: RIGHT is the new file). */
export type Side = 'RIGHT' | 'LEFT';
