/**
 * GitHub, as an App: our identity there, changes of repositories, and every write. Called by the backend's jobs (sync,
 * deliveries, outbox). Never here: the content of a review, the decision when to run one, git.
 */
export { type AppFacts, loadPrivateKey } from './app.ts';
export {
  type FailedDelivery,
  newReconcileState,
  type ReconcileResult,
  ReconcileState,
} from './deliveries.ts';
export { SourceError, type SourceErrorCode, sourceErrorCodes } from './errors.ts';
export type { RepositoryName } from './installations.ts';
export { type GitHubLimits, githubLimits } from './limits.ts';
export {
  CheckRunRequest,
  FileCommentRequest,
  ReactionRequest,
  ReplyRequest,
  ResolveThreadRequest,
  type ReviewComment,
  ReviewRequest,
  SummaryRequest,
} from './publish/requests.ts';
export type { SentComment, SentReview } from './publish/review.ts';
export type { ReviewFence } from './publish/target.ts';
export { type GitHubSettings, GitHubSource, type GitHubSourceOptions, type RepositoryId } from './source.ts';
export type { SyncOutcome, SyncResult } from './sync.ts';
