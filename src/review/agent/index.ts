/**
 * Reviews by an agent server: the prompt, the tools for the submission, and the conversation over JSON-RPC. Called by the runs.
 * Never here: git, the database, GitHub, the fate of a submission.
 */
export { createReviewAgent, type ReviewAgentOptions } from './agent.ts';
export { ReviewAgentError, type ReviewAgentErrorCode } from './errors.ts';
export { type AgentLimits, defaultAgentLimits } from './limits.ts';
export type {
  AnchoredFinding,
  ReviewAgent,
  ReviewAgentFailure,
  ReviewAssignment,
  ReviewHooks,
  ReviewSubmission,
} from './types.ts';
