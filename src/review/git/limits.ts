const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** Bounds on the work that a repository, a remote or a crash can cause. Times in milliseconds. */
export interface GitLimits {
  /** One fetch, the negotiation included. */
  readonly fetchMs: number;
  /** Any other git command. */
  readonly commandMs: number;
  /** A transfer slower than `lowSpeedBytes` a second for this time has stalled. */
  readonly lowSpeedSeconds: number;
  readonly lowSpeedBytes: number;
  /** Wait for another run, or process, that works on the same store. */
  readonly lockMs: number;
  /** One pack that a remote may send. */
  readonly packBytes: number;
  /** Heap of one git process. A command that needs more fails, for any size that a blob, a tree or a delta claims. */
  readonly memoryBytes: number;
  /** Heap of a fetch and of tidying, which hold something of every object. */
  readonly fetchMemoryBytes: number;
  /** Bytes read of a command's standard output, by default. */
  readonly outputBytes: number;
  /** A listing of a tree, which bounds the number of its files. */
  readonly listingBytes: number;
  readonly diffBytes: number;
  /** Files of a worktree. */
  readonly treeFiles: number;
  /** All files of a worktree together. */
  readonly treeBytes: number;
  /** A larger file is left out of the worktree. */
  readonly worktreeFileBytes: number;
  /** A larger file is binary in a diff, and streamed. */
  readonly bigFileBytes: number;
  /** A larger file is not read for the model or the anchors. */
  readonly readBytes: number;
  /** All files of one reading together. */
  readonly readAllBytes: number;
  /** Pairs of files compared for renames: `-l`. */
  readonly renameLimit: number;
  /** A longer path, or part of one, does not fit into every file system. */
  readonly pathBytes: number;
  readonly nameBytes: number;
  /** A store that no run has used for this time is removed. */
  readonly storeIdleMs: number;
}

export const defaultGitLimits: GitLimits = {
  fetchMs: 600_000,
  commandMs: 120_000,
  lowSpeedSeconds: 60,
  lowSpeedBytes: 1_000,
  lockMs: 900_000,
  packBytes: 4 * GiB,
  memoryBytes: 1 * GiB,
  fetchMemoryBytes: 2 * GiB,
  outputBytes: 1 * MiB,
  listingBytes: 64 * MiB,
  diffBytes: 16 * MiB,
  treeFiles: 500_000,
  treeBytes: 8 * GiB,
  worktreeFileBytes: 32 * MiB,
  bigFileBytes: 4 * MiB,
  readBytes: 4 * MiB,
  readAllBytes: 64 * MiB,
  renameLimit: 1_000,
  pathBytes: 3_000,
  nameBytes: 255,
  storeIdleMs: 30 * 24 * 3_600_000,
};
