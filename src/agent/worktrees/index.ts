/**
 * Worktrees of sub-agents that write at the same time: made from the files of the workspace, and brought back as one change; directories
 * of forked conversations. Never here: conversations, worktrees that a client names.
 */
export { forksOf, type OpenFork } from './forks.ts';
export { type OpenedWorktree, type OpenWorktree, worktreesOf } from './worktrees.ts';
