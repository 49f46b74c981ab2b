/**
 * The host's git, for checkouts of a stack: with the credentials of whoever runs it, never with tokens of the App (specification
 * §4.4 rule 7). Called when a plan is carried out and by the doctor. Never here: reviews, worktrees, what is in a repository.
 */
export { type CloneOptions, type CloneRequest, checkOrigin, cloneRepository } from './clone.ts';
export { type CloneUrlOptions, checkCloneUrl, cloneUrlFor } from './clone-url.ts';
export { findGit, type Git, type GitRunOptions } from './find-git.ts';
export { isOfRepository, isSameRemote, parseRemote, type Remote } from './remote.ts';
