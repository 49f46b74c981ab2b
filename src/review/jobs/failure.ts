import { type Failure, failureOf } from '../../../machines/index.ts';
import { ReviewError } from '../errors.ts';
import type { Job } from '../store/index.ts';
import { limits, retryPolicies } from './limits.ts';

/** Failure of a job. */
export interface JobFailure extends Failure {
  /** True for an unexpected error. */
  readonly isBug: boolean;
}

const passing: ReadonlySet<string> = new Set(['storageUnavailable', 'sourceUnavailable']);

/** Converts a thrown value to a failure. A bug is retried too: its cause may be gone. */
export function jobFailureOf(error: unknown): JobFailure {
  const failure = failureOf(error);
  const message = failure.message.slice(0, limits.errorCharacters);
  if (error instanceof ReviewError) return { ...failure, message, isRetryable: passing.has(error.code), isBug: false };
  const isBug = typeof (error as Partial<Failure> | null)?.isRetryable !== 'boolean';
  return isBug ? { code: 'internalError', message, isRetryable: true, isBug } : { ...failure, message, isBug };
}

/** How long until a job is tried again; `dead`: it is given up. */
export function pauseAfter({ kind, attempt }: Pick<Job, 'kind' | 'attempt'>, failure: Failure): number | 'dead' {
  const pauseMs = retryPolicies[kind].pausesMs[attempt - 1];
  if (!failure.isRetryable || pauseMs === undefined) return 'dead';
  return Math.round(Math.max(pauseMs * (1 + Math.random() * limits.jitter), failure.retryAfterMs ?? 0));
}
