import type { GitRestore } from './git-move.ts';
import type { ForkSpan } from './merge.ts';
import type { Owner } from './owner.ts';
import type { RestoreFindings } from './plan.ts';

/** Request for a mark. */
export interface MarkRequest extends Owner {
  /** `resume`: the turn continues after the death of its server. */
  readonly edge: 'start' | 'resume' | 'end';
}

export interface RestoreRequest {
  readonly thread: string;
  /** Turns, or a restore, to take back. */
  readonly turns: readonly string[];
  readonly paths: readonly string[] | undefined;
  readonly force: boolean;
  /** Turns of the conversation that go with the files. */
  readonly conversation: readonly string[];
}

/** Changes of a fork, for this tree. */
export interface MergeRequest {
  /** Thread to which the changes belong from then on. */
  readonly thread: string;
  readonly fork: ForkSpan;
  /** Overwrites paths that both changed and that cannot be merged. */
  readonly force: boolean;
}

/** Files of a conversation that arrives from another machine. */
export interface ArrivalRequest {
  readonly thread: string;
  /** File of the transfer. */
  readonly transfer: string;
  /** Mark at which the conversation left this tree; undefined: it was never here. */
  readonly departed: number | undefined;
}

/** A planned restore, staged and written down if it has no conflicts. Its operations stay with the engine. */
export interface PreparedRestore extends RestoreFindings {
  /** Undefined: refused because of its conflicts. */
  readonly number: number | undefined;
}

export interface RestoreOutcome extends RestoreFindings {
  /** Name by which the restore can be taken back. */
  readonly restoreId: string;
  /** The first restored paths. */
  readonly restored: readonly string[];
  readonly restoredTotal: number;
  /** Paths that changed while the restore ran, and that it did not touch: the first of them. */
  readonly changedMeanwhile: readonly string[];
  readonly changedMeanwhileTotal: number;
  /** Absent: the turns moved neither HEAD, a branch, nor the index. */
  readonly git?: GitRestore;
  /** Repositories in directories of the tree that the turns moved. */
  readonly repositories?: readonly NestedRestore[];
}

/** Result for a repository in a directory of the tree. */
export interface NestedRestore extends GitRestore {
  /** Directory of the repository. */
  readonly path: string;
}
