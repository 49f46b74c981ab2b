import { AppServerConnectionError, JsonRpcError } from '../../client/index.ts';
import type { ReviewAgentFailure } from './types.ts';

export type ReviewAgentErrorCode = 'agentUnavailable' | 'agentConnectionLost' | 'turnFailed' | 'draftMissing';

/** A review without a result. The message is for people and holds no token. */
export class ReviewAgentError extends Error implements ReviewAgentFailure {
  override readonly name = 'ReviewAgentError';
  readonly code: ReviewAgentErrorCode;
  readonly isRetryable: boolean;
  readonly retryAfterMs?: number;

  constructor(
    code: ReviewAgentErrorCode,
    message: string,
    { isRetryable = true, retryAfterMs, cause }: ErrorOptions & Partial<ReviewAgentFailure> = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.isRetryable = isRetryable;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** Turns errors of a connection into those of reviews. */
export function asFailure(error: unknown): unknown {
  if (error instanceof AppServerConnectionError) {
    return new ReviewAgentError('agentConnectionLost', error.message, { cause: error });
  }
  if (error instanceof JsonRpcError) {
    return new ReviewAgentError('agentUnavailable', `The agent server refused: ${error.message}`, { cause: error });
  }
  return error;
}
