import * as v from 'valibot';
import { messageOf } from '../../lib/index.ts';
import { ReviewError } from '../errors.ts';
import type { Job } from '../store/index.ts';
import { limits, retryPolicies } from './limits.ts';

/** Why a job did not come to its end. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly isRetryable: boolean;
  readonly retryAfterMs: number;
  /** An unexpected error. */
  readonly isBug: boolean;
}

/** Fields of errors of the other parts. */
const Told = v.object({
  code: v.string(),
  message: v.string(),
  isRetryable: v.boolean(),
  retryAfterMs: v.optional(v.number()),
});

const passing: ReadonlySet<string> = new Set(['storageUnavailable', 'sourceUnavailable']);

/** Converts a thrown value to a failure. A bug is retried too: its cause may be gone. */
export function failureOf(error: unknown): Failure {
  if (error instanceof ReviewError) {
    const { code, message } = error;
    return { code, message, isRetryable: passing.has(code), retryAfterMs: 0, isBug: false };
  }
  const told = v.safeParse(Told, error);
  if (told.success) {
    const { code, message, isRetryable, retryAfterMs = 0 } = told.output;
    return { code, message: short(message), isRetryable, retryAfterMs, isBug: false };
  }
  const message = messageOf(error);
  return { code: 'internalError', message: short(message), isRetryable: true, retryAfterMs: 0, isBug: true };
}

const short = (text: string): string => text.slice(0, limits.errorCharacters);

/** How long until a job is tried again; `dead`: it is given up. */
export function pauseAfter({ kind, attempt }: Pick<Job, 'kind' | 'attempt'>, failure: Failure): number | 'dead' {
  const pauseMs = retryPolicies[kind].pausesMs[attempt - 1];
  if (!failure.isRetryable || pauseMs === undefined) return 'dead';
  return Math.round(Math.max(pauseMs * (1 + Math.random() * limits.jitter), failure.retryAfterMs));
}
