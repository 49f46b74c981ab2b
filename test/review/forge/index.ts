/**
 * A GitHub for tests: the App, its installations and tokens, pull requests and all that is written to them, webhooks, git over
 * HTTP. Every answer is held against GitHub's own description (`mistakes` must stay empty). Never here: anything of `src`.
 */
export { type Fault, type Hold, rateLimits } from './faults.ts';
export { Forge, type ForgeOptions } from './forge.ts';
export { commitFiles, git } from './git.ts';
export {
  type ForgeCheckRun,
  type ForgeComment,
  type ForgeFile,
  type ForgePull,
  ForgeRepository,
  type ForgeReview,
  type ForgeReviewComment,
  shaOf,
} from './model.ts';
