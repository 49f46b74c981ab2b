/** Checkpoints of files: the saved state before and after a turn, and the result of a restore. */
import * as v from 'valibot';
import { BackgroundProcessInfo } from './threads.ts';

const id = v.pipe(v.string(), v.nonEmpty());

/** Type `T` with read-only arrays. */
export type Frozen<T> = {
  readonly [K in keyof T]: T[K] extends readonly (infer E)[] | undefined
    ? readonly E[] | Extract<T[K], undefined>
    : T[K];
};

/** Why an entry is in no checkpoint. Open: readers tolerate ones they do not know. */
export const skipReasons = [
  'tooLarge',
  'ignoredTooLarge',
  'unreadable',
  'special',
  'otherFileSystem',
  'changing',
  'overLimit',
  'repository',
] as const;

export const NotCovered = v.object({
  /** Relative to the workspace. */
  path: v.string(),
  reason: v.picklist(skipReasons),
  /** Bytes. */
  size: v.number(),
});

export const RestoreConflict = v.object({
  path: v.string(),
  change: v.picklist(['created', 'modified', 'deleted']),
  /** `user`, or the id of the thread whose turn changed it. */
  by: v.string(),
});
export type RestoreConflict = v.InferOutput<typeof RestoreConflict>;

export const Checkpoint = v.object({
  /** Id of the turn before which the files are saved, or of a restore, which can be taken back by it. */
  turnId: id,
  kind: v.picklist(['turn', 'restore']),
  at: v.string(),
  /** Files and directories that were compared. */
  files: v.number(),
  bytes: v.number(),
  /** Entries that it leaves out: the first of them, by path. */
  notCovered: v.array(NotCovered),
  /** How many entries it leaves out. */
  notCoveredTotal: v.number(),
  /** The changes of the turn or restore were taken back. */
  isUndone: v.boolean(),
  /** A restore that a crash interrupted: the next start completed it. */
  recovered: v.boolean(),
});
export type Checkpoint = v.InferOutput<typeof Checkpoint>;

const gitRestore = {
  /** Names of all that the turns moved: `HEAD`, refs by their full names, `index`, `config`, operations under way such as `MERGE_HEAD`. */
  moved: v.array(v.string()),
  /** True when all of them are set back. Commits stay in the reflog. */
  isRestored: v.boolean(),
  /** Why they stay, or a part of them. */
  reason: v.optional(v.string()),
  /** The first parts that stay, each with the command that sets it back. */
  left: v.optional(v.array(v.object({ name: v.string(), reason: v.string(), command: v.optional(v.string()) }))),
};

export const RestoredFiles = v.object({
  /** Takes this restore back: `turnId` of `checkpoint/restore`. */
  restoreId: id,
  /** First of the restored paths. */
  restored: v.array(v.string()),
  restoredTotal: v.number(),
  /** First of the paths that others have changed since, which stay. */
  kept: v.array(v.string()),
  keptTotal: v.number(),
  /** With `force`: changes of others that were overwritten, the first of them. */
  conflicts: v.array(RestoreConflict),
  conflictsTotal: v.number(),
  /** First of the paths that changed while the restore ran, which are left unchanged. */
  changedMeanwhile: v.array(v.string()),
  changedMeanwhileTotal: v.number(),
  /** Changed by the turns, and in no checkpoint: the first of them. */
  notCovered: v.array(NotCovered),
  notCoveredTotal: v.number(),
  /** Absent: the turns moved neither HEAD, a ref, nor the index. */
  git: v.optional(v.object(gitRestore)),
  /** Repositories in directories of the workspace that the turns moved. Absent: none. */
  repositories: v.optional(v.array(v.object({ path: v.string(), ...gitRestore }))),
  /** Commands in the background of the thread, which may write to the files again. */
  runningProcesses: v.optional(v.array(BackgroundProcessInfo)),
});
export type RestoredFiles = v.InferOutput<typeof RestoredFiles>;

export const diffFormats = ['unified', 'summary'] as const;

const ChangedFile = v.object({
  path: v.string(),
  change: v.picklist(['created', 'modified', 'deleted']),
  kind: v.picklist(['file', 'directory', 'link']),
  /** Added lines; 0 for binary files. */
  additions: v.number(),
  deletions: v.number(),
  /** The content is not shown: not text, or too large. */
  isBinary: v.boolean(),
});

export const FileDiff = v.object({
  format: v.picklist(diffFormats),
  files: v.array(ChangedFile),
  /** Unified diff, as git writes it; absent from a summary. */
  diff: v.optional(v.string()),
  /** More changed than is shown. */
  isCut: v.boolean(),
  /** Files of these turns that are back in their state before them: `restoreId` takes the restore back that did it. */
  putBack: v.array(v.object({ path: v.string(), restoreId: id })),
  /** Changed, and in no checkpoint: the first of them. */
  notCovered: v.array(NotCovered),
  notCoveredTotal: v.number(),
});
export type FileDiff = v.InferOutput<typeof FileDiff>;
