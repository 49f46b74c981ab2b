/**
 * Git for reviews: the change of a pull request, and a read-only worktree of it. A repository under review is hostile: its
 * hooks, filters, configuration, links and names run nothing, reach nothing outside and hide nothing. Called by the runs.
 *
 * Objects are in bare stores of our own below the worktree root, which borrow from the checkout of a route: its
 * configuration is never read by our git, its files are never changed. Never here: GitHub's API, prompts, the database.
 */
export type { Retention } from './clean.ts';
export { GitError, type GitErrorCode, gitErrorCodes } from './error.ts';
export { defaultGitLimits, type GitLimits } from './limits.ts';
export { gitEndpointOf } from './remote.ts';
export { removeTree } from './remove.ts';
export { openReviewGit, type ReviewGitOptions } from './review-git.ts';
export type {
  Change,
  ChangedFile,
  CleanReport,
  FullReason,
  OmittedFile,
  PreparedReview,
  RepositoryName,
  ReviewGit,
  ReviewTarget,
  RunOutcome,
} from './types.ts';
