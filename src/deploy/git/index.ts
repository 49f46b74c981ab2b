/**
 * Git of the host, for checkouts of a stack (specification §4.4 rule 7): uses the credentials of the calling user, never tokens of
 * the App. Called when a plan is carried out and by the doctor. Reviews, worktrees and repository contents are in other rooms.
 */
export { type CloneOptions, type CloneRequest, checkOrigin, cloneRepository } from './clone.ts';
export { type CloneUrlOptions, checkCloneUrl, cloneUrlFor } from './clone-url.ts';
export { findGit, type Git, type GitRunOptions } from './find-git.ts';
export { isOfRepository, isSameRemote, parseRemote, type Remote } from './remote.ts';
