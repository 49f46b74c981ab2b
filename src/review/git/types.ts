import type { GitError } from './error.ts';

/** A repository on the source. Names have the source's spelling. */
export interface RepositoryName {
  /** Host, with its port if it has one: `github.com`. */
  readonly instance: string;
  readonly owner: string;
  readonly name: string;
}

/** Commits to review, as the source reported them a moment ago. */
export interface ReviewTarget {
  /** Names the worktree: a second `prepare` of the same run continues, or replaces, the result of the first. */
  readonly runId: string;
  readonly repository: RepositoryName;
  /** The route's checkout (with a working tree, bare, or a linked worktree). Its objects are borrowed; nothing in it is changed or run. */
  readonly workspacePath: string;
  readonly number: number;
  /** Full object name. */
  readonly headSha: string;
  /** Branch name without `refs/heads/`. */
  readonly baseRef: string;
  readonly baseSha: string;
  /** Head of the review that this one continues; null for a full review. */
  readonly sinceSha: string | null;
  /** Files of the base commit that will be read, loaded in parallel with the other work. */
  readonly wantedOfBase?: readonly string[];
  /** Called only when objects must be fetched. Null when the remote needs no token. */
  readonly token: () => Promise<string | null>;
  readonly signal?: AbortSignal;
}

/** Reason for a full review where an incremental one was requested. */
export type FullReason = 'notAsked' | 'forcePushed' | 'baseChanged' | 'objectsMissing' | 'sameHead';

/** One changed file. */
export interface ChangedFile {
  /** Current path; the last path of a deleted file. Bytes that are not UTF-8 are shown as U+FFFD. */
  readonly path: string;
  /** Path before the change, when it differs. */
  readonly oldPath: string | null;
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed';
  readonly isBinary: boolean;
  readonly isSubmodule: boolean;
  readonly isSymlink: boolean;
  /** Null for binary files. */
  readonly additions: number | null;
  readonly deletions: number | null;
  /** The name is not valid UTF-8, so JSON cannot hold it: no comment is possible. */
  readonly isNameBroken: boolean;
}

/** Difference between two commits. */
export interface Change {
  /** Unified, three lines of context, renames found. */
  readonly diff: string;
  /** The diff was longer than the limit and ends after a whole file: `files` is complete all the same. */
  readonly isDiffCut: boolean;
  readonly files: readonly ChangedFile[];
}

/** A file that is in the head but not in the worktree. */
export interface OmittedFile {
  readonly path: string;
  readonly reason: 'tooLarge' | 'nameTooLong';
}

/** A worktree at the head of a pull request, and the facts that its review needs. */
export interface PreparedReview extends Change {
  /** Absolute; read-only. */
  readonly worktreePath: string;
  readonly headSha: string;
  /** Tip of the base branch (or the given base commit when the branch is gone): rules are read from it. */
  readonly baseSha: string;
  readonly mergeBaseSha: string;
  readonly scope: 'full' | 'incremental';
  /** Null when the scope is incremental. */
  readonly fullReason: FullReason | null;
  /**
   * Difference since `sinceSha`, of the files that differ from the base; null when the scope is full. `diff` and `files` always
   * hold the whole change: anchors are in it.
   */
  readonly since: Change | null;
  readonly omitted: readonly OmittedFile[];
  /**
   * Reads a file of the base commit as text. Null when it is missing, or is a link, a submodule or a directory. Throws
   * `fileTooLarge`, `pathOutside`.
   */
  baseFiles(path: string): Promise<string | null>;
  /** Reads one file of the head. */
  readHead(path: string): Promise<string | null>;
  /** Difference from an earlier head to this one, renames included; null when the earlier head can no longer be compared. */
  changeSince(sha: string): Promise<Change | null>;
  /** Reads many files of the head at once. A missing file is null, and so is one that is too large or beyond the limit. */
  readHeadFiles(paths: readonly string[]): Promise<ReadonlyMap<string, string | null>>;
  /** The bytes of many files, under the same limits. */
  readHeadBytes(paths: readonly string[]): Promise<ReadonlyMap<string, Uint8Array | null>>;
}

/** End of a run: decides the retention of its worktree. */
export type RunOutcome = 'succeeded' | 'failed';

/** Result of a clean-up. */
export interface CleanReport {
  /** Keys of worktrees that are gone. */
  readonly removed: readonly string[];
  /** Worktrees that could not be removed now and will be tried again, with the reason. */
  readonly failed: readonly { readonly key: string; readonly error: GitError | Error }[];
}

/** Git for reviews. Every promise may reject with `GitError`, and with the reason of an aborted `signal`. */
export interface ReviewGit {
  /**
   * Fetches the head and the base, compares, diffs and makes the read-only worktree.
   *
   * `reviewTargetMoved` carries `actualHead`: read the pull request again, and call again, three times at most.
   */
  prepare(target: ReviewTarget): Promise<PreparedReview>;
  /** Throws `worktreeDirty` unless the worktree is in the state of its creation. */
  verifyClean(worktreePath: string): Promise<void>;
  /** Ends a run; its worktree stays for the time of its outcome, then `clean` removes it. Unknown runs are ignored. */
  release(runId: string, outcome: RunOutcome): Promise<void>;
  /**
   * Removes worktrees whose time is over and the remains of crashes; tidies the object stores.
   *
   * @param isActive whether a run is still active, for worktrees that were never released: those of dead runs count as failed
   */
  clean(now: Date, isActive: (runId: string) => boolean | Promise<boolean>): Promise<CleanReport>;
  /** Ends every git process of ours. */
  close(): Promise<void>;
}
