/** Failure of a piece of work. It never contains a secret. */
export interface Failure {
  readonly code: string;
  /** A sentence for people. */
  readonly message: string;
  /** True when the same work may succeed later. */
  readonly isRetryable: boolean;
  /** Time before the next try, as the other side requested. */
  readonly retryAfterMs?: number;
  /** Time until the limit that refused the work is reset, as the other side stated it. */
  readonly resetMs?: number;
  /** Time of the failure, in milliseconds since the epoch. */
  readonly at?: number;
  /** Repetitions after which the same failure ends the work, where the limit of the work is higher. */
  readonly maxRetries?: number;
  /** Refused part that the next request leaves out, in words. Absent: the next request would be the same. */
  readonly leftOut?: string;
}

/** Converts a thrown value by its fields. Without a code it is a bug, `internalError`, and not retryable. */
export function failureOf(error: unknown): Failure {
  const { code, message, isRetryable, retryAfterMs, resetMs, at, maxRetries, leftOut } = (error ?? {}) as Readonly<
    Record<string, unknown>
  >;
  return {
    code: typeof code === 'string' ? code : 'internalError',
    message: typeof message === 'string' ? message : String(error),
    isRetryable: isRetryable === true,
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
    ...(typeof resetMs === 'number' && { resetMs }),
    ...(typeof at === 'number' && { at }),
    ...(typeof maxRetries === 'number' && { maxRetries }),
    ...(typeof leftOut === 'string' && { leftOut }),
  };
}

export const cancelledFailure: Failure = { code: 'cancelled', message: 'It was cancelled.', isRetryable: false };
