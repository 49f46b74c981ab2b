import { type Failure, failureOf } from '../../../machines/index.ts';
import { ReviewError } from '../errors.ts';
import { isOutage, type Job } from '../store/index.ts';
import { limits, retryPolicies } from './limits.ts';

/** Failure of a job. */
export interface JobFailure extends Failure {
  /** True for an unexpected error. */
  readonly isBug: boolean;
  /** The database cannot serve at present: the job waits, and the attempt does not count. */
  readonly isOutage: boolean;
}

const passing: ReadonlySet<string> = new Set(['storageUnavailable', 'sourceUnavailable']);

/** Converts a thrown value to a failure. A bug is retried too: its cause may be gone. */
export function jobFailureOf(error: unknown): JobFailure {
  const failure = failureOf(error);
  const message = failure.message.slice(0, limits.errorCharacters);
  const common = { ...failure, message, isBug: false, isOutage: isOutage(error) };
  if (error instanceof ReviewError) return { ...common, isRetryable: passing.has(error.code) };
  const isBug = typeof (error as Partial<Failure> | null)?.isRetryable !== 'boolean';
  return isBug ? { ...common, code: 'internalError', isRetryable: true, isBug } : common;
}

/** Time until a job is retried; `dead`: the job is given up. */
export function pauseAfter(
  { kind, attempt }: Pick<Job, 'kind' | 'attempt'>,
  failure: Failure & { readonly isOutage?: boolean },
): number | 'dead' {
  if (failure.isOutage === true) return Math.round(limits.outagePauseMs * (1 + Math.random() * limits.jitter));
  const pauseMs = retryPolicies[kind].pausesMs[attempt - 1];
  if (!failure.isRetryable || pauseMs === undefined) return 'dead';
  return Math.round(Math.max(pauseMs * (1 + Math.random() * limits.jitter), failure.retryAfterMs ?? 0));
}

/** Attempts of a kind of job. */
const attemptsOf = (kind: Job['kind']): number => retryPolicies[kind].pausesMs.length + 1;

/** Whether a claimed job has begun more attempts than its kind allows: the processes of earlier ones ended during their work. */
export const exceedsAttempts = ({ kind, attempt }: Pick<Job, 'kind' | 'attempt'>): boolean =>
  attempt > attemptsOf(kind);

/** Whether reporting the end of such a job was also tried several times. */
export const exceedsReports = ({ kind, attempt }: Pick<Job, 'kind' | 'attempt'>): boolean =>
  attempt > attemptsOf(kind) + limits.giveUpAttempts;

export const attemptsExhausted: JobFailure = {
  code: 'attemptsExhausted',
  message: 'Every process that worked on it ended before it was done.',
  ...{ isRetryable: false, isBug: false, isOutage: false },
};
