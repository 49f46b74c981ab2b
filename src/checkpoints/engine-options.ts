import { join } from 'node:path';
import type { RunGit } from './ignored.ts';
import type { CheckpointLimits } from './limits.ts';

/** Place, limits and programs of one tree's checkpoints. */
export interface EngineOptions {
  /** Canonical path of the tree. */
  readonly root: string;
  /** Directory of the store; created when it is missing. */
  readonly directory: string;
  readonly limits: CheckpointLimits;
  /** Absolute paths that are not part of the tree: the user's home of Oratorio may lie in it. */
  readonly ownDirectories?: readonly string[] | undefined;
  /** Runs git for the names that it ignores; undefined: nothing is ignored. */
  readonly git: RunGit | undefined;
  /** Environment of git for merges of texts; undefined: texts are not merged. */
  readonly mergeEnvironment?: Readonly<Record<string, string>> | undefined;
  /** Called before each step that changes the disk; for tests. */
  readonly onStep?: ((step: string) => void) | undefined;
}

/** Files of a store. */
export const databaseIn = (directory: string): string => join(directory, 'checkpoints.db');
export const packsIn = (directory: string): string => join(directory, 'packs');
