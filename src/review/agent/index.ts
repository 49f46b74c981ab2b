/**
 * Reviews by an agent server: what the model is asked, the tools through which it hands in, and the conversation itself over
 * JSON-RPC. Called by the runs. Never here: git, the database, GitHub, what becomes of a submission.
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
