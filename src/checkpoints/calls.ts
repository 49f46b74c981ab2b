import type { Engine } from './engine.ts';
import type { CheckpointLimits } from './limits.ts';

/** Methods of an engine that another thread calls: their arguments and results are plain data. */
export const callNames = [
  'mark',
  'markDeath',
  'prepare',
  'prepareMerge',
  'prepareArrival',
  'depart',
  'head',
  'forkChanges',
  'interrupted',
  'apply',
  'conclude',
  'diff',
  'announceCopy',
  'copyTo',
  'keepCopy',
  'openCopies',
  'removeCopy',
  'clearStaging',
  'turns',
  'list',
  'turnsFrom',
  'dropTurn',
  'forget',
  'prune',
] as const satisfies readonly (keyof Engine)[];

export type CallName = (typeof callNames)[number];
export type CallArguments<N extends CallName> = Parameters<Engine[N]>;
export type CallResult<N extends CallName> = Awaited<ReturnType<Engine[N]>>;

/** A tree and its store. */
export interface TreePlace {
  readonly treeId: string;
  /** Canonical path of the tree. */
  readonly root: string;
  /** Directory of the store; created when it is missing. */
  readonly directory: string;
  readonly limits: CheckpointLimits;
  /** Absolute paths that are not part of the tree. */
  readonly ownDirectories: readonly string[];
  /** Environment of git, without keys; undefined: git is not run. */
  readonly gitEnvironment: Readonly<Record<string, string>> | undefined;
}

/** Engines by tree, in this thread or in another one. A store is opened by the first call for it. */
export interface Engines {
  /** Prepares for a call that will come soon: begins the work that the first call would begin. */
  prepare?(): void;
  /** @throws any error of the method */
  call<N extends CallName>(place: TreePlace, name: N, args: CallArguments<N>): Promise<CallResult<N>>;
  /** Closes the store of a tree. The next call opens it again. */
  release(treeId: string): Promise<void>;
}
