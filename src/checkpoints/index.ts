/**
 * Checkpoints of the files of a workspace: saved before and after each turn, compared, restored. Stored by content in SQLite and
 * packs in the home, never in the workspace. Git runs for the names that it ignores, for HEAD, branches and the index, for merges
 * of texts and for worktrees of removed forks. Never here: conversations, approvals.
 */
export type { Engines } from './calls.ts';
export type { KnownWork } from './death.ts';
export type { ChangedFile, TurnDiff } from './diff.ts';
export type { Conflict } from './directories.ts';
export { EngineThread, type EngineThreadOptions } from './engine-thread.ts';
export type { NotCovered, SkipReason } from './entry.ts';
export { CheckpointError } from './errors.ts';
export { excludeFromGit } from './git-exclude.ts';
export { type CheckpointLimits, defaultLimits } from './limits.ts';
export type { CheckpointInfo } from './list.ts';
export { LocalEngines } from './local-engines.ts';
export type { RestoreOutcome } from './requests.ts';
export { type RestoreResult, TreeCheckpoints, type TreeCheckpointsOptions } from './tree-checkpoints.ts';
export {
  type RestoreFiles,
  storedChanges,
  type TurnPlace,
  WorkspaceCheckpoints,
  type WorkspaceCheckpointsOptions,
} from './workspace-checkpoints.ts';
