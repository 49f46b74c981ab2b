/** Limits of the checkpoints of one tree of files. */
export interface CheckpointLimits {
  readonly fileBytes: number;
  /** Largest file among those that git ignores, in bytes. */
  readonly ignoredFileBytes: number;
  readonly entries: number;
  readonly contentBytes: number;
  readonly storeBytes: number;
  readonly ageMs: number;
  /** No checkpoint is taken with less space on the disk. */
  readonly freeBytes: number;
}

const mib = 2 ** 20;

export const defaultLimits: CheckpointLimits = {
  fileBytes: 64 * mib,
  ignoredFileBytes: 16 * mib,
  entries: 200_000,
  contentBytes: 4_096 * mib,
  storeBytes: 5_120 * mib,
  ageMs: 14 * 86_400_000,
  freeBytes: 1_024 * mib,
};

/** Content is stored in pieces of this size, so that no step blocks for long. */
export const pieceBytes = 256 * 1_024;

/**
 * Contents up to this size are compressed together, up to a number of bytes and of contents: for each alone, the library would set
 * up more than it compresses.
 */
export const smallBytes = 16 * 1_024;
export const groupBytes = 64 * 1_024;
export const groupContents = 512;

/** A pack that has grown to this size is followed by another one. */
export const packBytes = 256 * mib;

/** A time stamp this close to the start of a scan does not show a later write: the file is read again (git calls it racy). */
export const racyMs = 20;

/** Attempts to read a file that changes during the read. */
export const readTries = 3;

/** Trees with fewer entries are scanned when the first tool needs it; larger ones beside the first request to the model. */
export const smallTreeEntries = 2_000;

/** Most entries of a list that a response names. */
export const maxListedPaths = 200;

/** Largest repository in a directory of the tree that is saved with the files; of a larger one only the state is saved. */
export const maxRepositoryEntries = 1_000;
export const maxRepositoryBytes = 16 * mib;
