import { GitHubError } from '../../github/index.ts';
import { messageOf } from '../../lib/index.ts';

/** Error codes of a source. */
export const sourceErrorCodes = [
  'appIdMissing',
  'privateKeyMissing',
  'privateKeyInvalid',
  'privateKeyTooShort',
  /** GitHub does not know the App id, or the key is not the App's. */
  'appCredentialsInvalid',
  /** The JWT was refused because the clocks differ. */
  'clockSkew',
  'appNotInstalled',
  'installationSuspended',
  'unauthorized',
  'forbidden',
  'notFound',
  /** 400, 409 or 422: a repeated request is refused again. */
  'rejected',
  'rateLimited',
  'secondaryRateLimited',
  'sourceUnavailable',
  'timedOut',
  'connectionFailed',
  /** The response does not match GitHub's description. */
  'invalidAnswer',
  /** The request to write is not complete. */
  'invalidRequest',
] as const;
export type SourceErrorCode = (typeof sourceErrorCodes)[number];

const retryable: ReadonlySet<SourceErrorCode> = new Set([
  'clockSkew',
  'unauthorized',
  'rateLimited',
  'secondaryRateLimited',
  'sourceUnavailable',
  'timedOut',
  'connectionFailed',
  'invalidAnswer',
]);
/** Errors after which it is unknown whether a write has happened. */
const ambiguous: ReadonlySet<SourceErrorCode> = new Set([
  'sourceUnavailable',
  'timedOut',
  'connectionFailed',
  'invalidAnswer',
]);

/** A failure of GitHub or on the way to it. Carries no request, and so no token. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly code: SourceErrorCode;
  /** HTTP status; null when there was no answer. */
  readonly status: number | null;
  /** Time until a retry makes sense, in milliseconds from now. */
  readonly retryAfterMs?: number;

  constructor(code: SourceErrorCode, message: string, status: number | null = null, retryAfterMs?: number) {
    super(message);
    this.code = code;
    this.status = status;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }

  /** A repeated call may succeed later, without a change on our side. */
  get isRetryable(): boolean {
    return retryable.has(this.code);
  }
  /** Whether a write may have happened although it failed. */
  get mayHaveHappened(): boolean {
    return ambiguous.has(this.code);
  }
}

/** Converts any error of octokit, which wraps those of our transport, and any `GitHubError`. */
export function toSourceError(error: unknown): SourceError {
  if (error instanceof SourceError) return error;
  if (!isRequestError(error)) return unanswered(error);
  return error.response ? answered(error, error.response) : unanswered(error.cause);
}

function unanswered(cause: unknown): SourceError {
  if (cause instanceof GitHubError) return new SourceError(cause.code, cause.message);
  return new SourceError('connectionFailed', `GitHub could not be asked: ${plain(messageOf(cause))}`);
}

/** Error of octokit, whose class is not exported. */
interface RequestError extends Error {
  readonly status: number;
  readonly response?: { readonly headers: Readonly<Record<string, unknown>> };
}
const isRequestError = (error: unknown): error is RequestError =>
  error instanceof Error && error.name === 'HttpError' && 'status' in error && typeof error.status === 'number';

function answered(
  error: RequestError,
  { headers }: { readonly headers: Readonly<Record<string, unknown>> },
): SourceError {
  const { status } = error;
  const text = plain(error.message);
  const limited = rateLimitOf(error, headers);
  if (limited) return limited;
  const code = skewed.test(error.message) ? 'clockSkew' : (codesByStatus.get(status) ?? codeOfRange(status));
  return new SourceError(
    /suspended/i.test(error.message) && status === 403 ? 'installationSuspended' : code,
    `GitHub answered ${status}: ${text}`,
    status,
  );
}

const skewed = /claim \('(exp|iat)'\)/;
const codesByStatus = new Map<number, SourceErrorCode>([
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'notFound'],
  [408, 'timedOut'],
  [410, 'notFound'],
  [451, 'forbidden'],
]);
const codeOfRange = (status: number): SourceErrorCode => (status >= 500 ? 'sourceUnavailable' : 'rejected');

/** Pause that GitHub asks for when its response names none. */
const defaultPauseMs = 60_000;

function rateLimitOf(
  { status, message }: RequestError,
  headers: Readonly<Record<string, unknown>>,
): SourceError | undefined {
  if (status !== 403 && status !== 429) return;
  const isSecondary = /secondary rate|abuse/i.test(message);
  const isSpent = String(headers['x-ratelimit-remaining']) === '0';
  if (!(isSecondary || isSpent || status === 429 || headers['retry-after'] !== undefined)) return;
  const code = isSecondary || !isSpent ? 'secondaryRateLimited' : 'rateLimited';
  return new SourceError(code, `GitHub answered ${status}: ${plain(message)}`, status, pauseOf(headers, isSpent));
}

function pauseOf(headers: Readonly<Record<string, unknown>>, isSpent: boolean): number {
  const seconds = Number(headers['retry-after']);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1_000;
  const reset = Number(headers['x-ratelimit-reset']) * 1_000;
  // By GitHub's own clock: ours may be wrong.
  const now = Date.parse(String(headers['date'])) || Date.now();
  return isSpent && Number.isFinite(reset) ? Math.max(0, reset - now) + 1_000 : defaultPauseMs;
}

const longestMessage = 500;
const secrets = /gh[opsur]_[\w.-]+|github_pat_\w+|(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]+|(?<=bearer |token |basic )\S+/gi;

/** Makes a foreign text fit for a log: short, on one line, without anything that looks like a credential. */
export function plain(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .replace(secrets, '[redacted]')
    .trim()
    .slice(0, longestMessage);
}
