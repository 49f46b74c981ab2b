/**
 * Worktrees of sub-agents that write at the same time: made from the files of the workspace, and brought back as one change. Never here:
 * conversations, worktrees that a client names.
 */
export { type OpenedWorktree, type OpenWorktree, worktreesOf } from './worktrees.ts';
