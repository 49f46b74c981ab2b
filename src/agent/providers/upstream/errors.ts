import type { IncomingHttpHeaders } from 'node:http';
import { maxRetryAfterMs } from '../../../../machines/index.ts';
import { isLoopback } from '../../../lib/index.ts';
import { defaults } from '../../../protocol/index.ts';
import { ModelError, type ModelErrorCode } from '../../model.ts';
import type { KeySource } from '../settings.ts';
import { isRecord, type Json, wordOf } from './json.ts';
import { resetMs, senderNow } from './reset.ts';
import { limitResetMs, retryAfterMs, statedWaitMs } from './retry.ts';

/** Problem that an upstream reports. */
export interface Problem {
  readonly message: string;
  /** `code`, `type`, `status` and `reason` of the error, lower-cased, for comparing. */
  readonly words?: readonly string[];
  readonly status?: number | undefined;
  /** Pause that the error itself asks for, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Refused parts of the request: `param` of OpenAI, `field` of Google's `BadRequest`. */
  readonly fields?: readonly string[];
  /** Names of the exceeded quotas, from Google's `QuotaFailure`. */
  readonly quotas?: readonly string[];
  /** Error object of the response body. */
  readonly error?: Json;
}

/** An error inside an answer: `{"error": {…}}`, `{"error": "…"}`, `{"object": "error", "message": …}`. Other objects may be anything. */
export function problemIn(value: Json): Problem | undefined {
  const { error, object, type } = value;
  if (typeof error === 'string' && error !== '') return { message: wordOf(value['message']) ?? error };
  if (isRecord(error)) return problemOf(error);
  return object === 'error' || type === 'error' ? problemOf(value) : undefined;
}

/** Reads the body of a certain error, which some services write as a list, with `detail` or with only a `message`. */
function problemInBody(body: unknown): Problem {
  const value = Array.isArray(body) ? body[0] : body;
  if (!isRecord(value)) return { message: '' };
  const { detail, message } = value;
  const known = problemIn(value);
  if (known) return known;
  if (typeof message === 'string') return problemOf(value);
  return { message: typeof detail === 'string' ? detail : (JSON.stringify(detail) ?? '') };
}

function problemOf(error: Json): Problem {
  const { message, code, type, status } = error;
  const number = [status, code].map(Number).find((value) => value >= 400 && value < 600);
  const details = [error, ...recordsIn(error['details']), ...recordsIn(error['errors'])];
  return {
    error,
    message: wordOf(message) ?? wordOf(code) ?? wordOf(type) ?? 'no reason given',
    words: [code, type, status, ...details.map(({ reason }) => reason)].flatMap(
      (word) => wordOf(word)?.toLowerCase() ?? [],
    ),
    status: number,
    retryAfterMs: statedWaitMs(error),
    fields: details
      .flatMap((detail) => [detail, ...recordsIn(detail['fieldViolations'])])
      .flatMap(({ param, field }) => wordOf(param) ?? wordOf(field) ?? []),
    quotas: details.flatMap(({ violations }) => recordsIn(violations).flatMap(({ quotaId }) => wordOf(quotaId) ?? [])),
  };
}

const recordsIn = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isRecord) : []);

const contextCodes = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
  'context_window_exceeded',
  'request_too_large',
]);
/** Words of the services for a conversation that is too long; of each, the shortest part that no other error shares. */
const contextWords = new RegExp(
  [
    'context[ _-]?(?:length|window|size|limit)',
    'maximum context',
    'prompt is too long',
    'input is too long',
    'too many (?:input )?tokens',
    "exceeds? the (?:available |model'?s? )?context",
    'input token count.{0,80}exceeds the maximum',
    'exceeded model token limit',
    'maximum prompt length is',
    'reduce the length of the messages',
    'range of input length should be',
  ].join('|'),
  'i',
);

/** Google answers 400 to a wrong key. */
const invalidKeyWords = /API key not valid|API_KEY_INVALID/;

const quotaCodes = new Set([
  'insufficient_quota',
  'billing_error',
  'billing_not_active',
  'billing_hard_limit_reached',
  'dailylimitexceeded',
]);
/** Google answers 403 to some of the requests that come too fast. */
const rateCodes = new Set(['rate_limit_exceeded', 'rate_limit_error', 'ratelimitexceeded', 'userratelimitexceeded']);
/** A spent account or day: waiting for minutes does not help. */
const quotaWords =
  /insufficient (?:quota|balance|credits?|funds)|exceeded your current quota|credit balance is too low|no credits|out of credits|perday|per day|daily (?:limit|quota)/i;

/**
 * Refused states of earlier answers: OpenAI's reasoning of another account, Anthropic's and Google's signatures. Leaving them out
 * costs quality, and lets the conversation continue.
 */
const stateWords =
  /invalid_encrypted_content|encrypted content .{0,80}could not be|invalid `?signature|thought_signature.{0,40}(?:invalid|not valid)|corrupted thought signature/i;

/** Status codes after which the same request may succeed; 501 and 505 will never. */
const temporaryStatus = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || (status >= 500 && status !== 501 && status !== 505);

/** Other end of a connection, for messages; never credentials. */
export interface Peer {
  /** Host and port. */
  readonly address: string;
  /** Host and port of the proxy, and the variable or setting that names it. */
  readonly proxy?: string;
  readonly keySource?: KeySource;
}

const through = ({ proxy }: Partial<Peer>): string => (proxy === undefined ? '' : ` through the proxy ${proxy}`);

export interface RefusalContext {
  readonly clean: (text: string) => string;
  readonly now: number;
  readonly place?: Peer;
}

/** Error of an answer with an unsuccessful status. */
export function refusedFault(
  status: number,
  headers: IncomingHttpHeaders,
  body: string,
  { clean, now: ownNow, place }: RefusalContext,
): ModelError {
  const now = senderNow(headers, ownNow);
  const problem = problemInBody(parsed(body));
  const reason = reasonFor(status, shortened(clean(problem.message)));
  const limitMs = resetOf(status, headers, problem, now);
  const rateMs = status === 429 ? limitResetMs(headers, now) : undefined;
  const waitMs =
    retryAfterMs(headers, now) ?? problem.retryAfterMs ?? (rateMs === undefined ? future(limitMs) : shortWait(rateMs));
  const code = codeFor(status, { ...problem, retryAfterMs: waitMs });
  return new ModelError(code, refusalText({ status, code, reason, place }), {
    // Waiting for a shorter limit does not help.
    retryAfterMs: code === 'upstreamQuotaExceeded' ? (limitMs ?? waitMs) : waitMs,
    ...(isLimitCode(code) && { resetMs: limitMs }),
    isRetryable: mayRetry(status, code, headers['x-should-retry']),
    refusesState: refusesState(code, problem),
    status,
    refusedFields: problem.fields,
  });
}

/** Names host, key and remedy of a refused key: several providers and files may be configured. */
function refusalText({ status, code, reason, place }: Refusal): string {
  if (!place || code !== 'upstreamUnauthorized')
    return `The upstream answered ${status}${through(place ?? {})}${reason}.`;
  const { address, keySource } = place;
  const said = `The upstream at ${address}${through(place)} refuses`;
  return keySource
    ? `${said} the key of ${keySource.file} (${status}${reason}). ${keySource.remedy}`
    : `${said} the key (${status}${reason}).`;
}

interface Refusal {
  readonly status: number;
  readonly code: ModelErrorCode;
  /** Begins with a colon; empty: the upstream gave none. */
  readonly reason: string;
  readonly place: Peer | undefined;
}

const isLimitCode = (code: ModelErrorCode): boolean =>
  code === 'upstreamRateLimited' || code === 'upstreamQuotaExceeded';

/** Time until the limit behind a refusal is reset; undefined: the refusal states no time, or has another reason. */
function resetOf(status: number, headers: IncomingHttpHeaders, problem: Problem, now: number): number | undefined {
  const { message, words = [], quotas = [], error = {} } = problem;
  const isUsedUp = status === 402 || words.some((word) => quotaCodes.has(word));
  const isLimit = isUsedUp || status === 429 || status === 403;
  return isLimit ? resetMs({ headers, error, message, quotas, isUsedUp, now }) : undefined;
}

/** Time until a reset; undefined for a reset in the past, which states no pause. */
const future = (waitMs: number | undefined): number | undefined =>
  waitMs !== undefined && waitMs > 0 ? waitMs : undefined;

/** Time until a rate limit is reset; undefined when a turn would not wait that long, because the rate may be free earlier. */
const shortWait = (waitMs: number): number | undefined => (waitMs <= maxRetryAfterMs ? future(waitMs) : undefined);

/** An error inside an answer that began as a success. */
export function reportedFault(problem: Problem, clean: (text: string) => string, now = Date.now()): ModelError {
  const { status = statusIn(problem) } = problem;
  const code = codeFor(status, problem);
  const limitMs = resetOf(status, {}, problem, now);
  return new ModelError(code, `The upstream reported an error: ${shortened(clean(problem.message))}.`, {
    retryAfterMs: problem.retryAfterMs ?? future(limitMs),
    ...(isLimitCode(code) && { resetMs: limitMs }),
    isRetryable: mayRetry(status, code, undefined),
    refusesState: refusesState(code, problem),
    status,
    refusedFields: problem.fields,
  });
}

/** Matches messages of external agents about a limit of their subscription. */
const agentLimitWords =
  /(?:usage|rate|session|weekly|request)[ _-]?limit|hit your .{0,20}limit|limit reached|quota|too many requests/i;

/**
 * Limit that an external agent reports in an ACP error, found by its data and its message.
 *
 * @param data data of the error, untrusted
 */
export function agentLimit(
  message: string,
  data: unknown,
  now: number,
): Pick<ModelError, 'code' | 'resetMs'> | undefined {
  const problem = { ...(isRecord(data) ? (problemIn(data) ?? problemOf(data)) : {}), message };
  const said = [message, ...(problem.words ?? [])].join(' ');
  const isLimit = problem.status === 429 || statusIn(problem) === 429 || agentLimitWords.test(said);
  if (!isLimit) return undefined;
  const limitMs = resetOf(429, {}, problem, now);
  return { code: codeFor(429, { ...problem, retryAfterMs: limitMs }), resetMs: limitMs };
}

const refusesState = (code: ModelErrorCode, { message, words = [] }: Problem): boolean =>
  code === 'upstreamRejected' && stateWords.test([message, ...words].join(' '));

function mayRetry(status: number, code: ModelErrorCode, hint: unknown): boolean {
  if (code === 'contextTooLong' || code === 'upstreamQuotaExceeded') return false;
  if (hint === 'true' || hint === 'false') return hint === 'true';
  return code === 'upstreamRateLimited' || temporaryStatus(status);
}

const statusWords: readonly (readonly [RegExp, number])[] = [
  [/auth|api_key|permission/, 401],
  [/overloaded/, 529],
  [/(?:rate|usage)_?limit|too_many|quota|resource_exhausted/, 429],
  [/invalid_request|bad_request|not_found|unsupported/, 400],
];

/** The status that an error without one would have had. */
function statusIn({ words = [] }: Problem): number {
  return statusWords.find(([pattern]) => words.some((word) => pattern.test(word)))?.[1] ?? 500;
}

function codeFor(status: number, problem: Problem): ModelErrorCode {
  const { message, words = [] } = problem;
  const isRefusal = status !== 401 && status !== 403 && status !== 429;
  if (isRefusal && (words.some((word) => contextCodes.has(word)) || contextWords.test(message)))
    return 'contextTooLong';
  if (status === 413) return 'contextTooLong';
  const limit = limitIn(status, problem);
  if (limit) return limit;
  if (invalidKeyWords.test(message) || words.includes('api_key_invalid')) return 'upstreamUnauthorized';
  if (status === 401 || status === 403) return 'upstreamUnauthorized';
  if (status === 429) return 'upstreamRateLimited';
  return status >= 500 ? 'upstreamFailed' : 'upstreamRejected';
}

/**
 * Whether an account or its rate is used up. Fields decide, then a stated pause that a turn waits for, and the words of the message
 * only where the service states neither: Google words both limits alike.
 */
function limitIn(status: number, { message, words = [], quotas = [], retryAfterMs: wait }: Problem) {
  const hasCode = (codes: ReadonlySet<string>) => words.some((word) => codes.has(word));
  if (status === 402 || hasCode(quotaCodes)) return 'upstreamQuotaExceeded';
  if (quotas.some((quota) => /perday|permonth/i.test(quota))) return 'upstreamQuotaExceeded';
  const isLimit = status === 429 || (status === 403 && hasCode(rateCodes));
  const isShort = quotas.some((quota) => /per(?:minute|second|hour)/i.test(quota));
  if (isLimit && (isShort || (wait !== undefined && wait <= maxRetryAfterMs))) return 'upstreamRateLimited';
  if (quotaWords.test(message)) return 'upstreamQuotaExceeded';
  return isLimit ? 'upstreamRateLimited' : undefined;
}

function reasonFor(status: number, reason: string): string {
  if (reason !== '') return `: ${reason}`;
  return status >= 300 && status < 400 ? ' (redirects are not followed)' : '';
}

/** One line without a full stop. */
const shortened = (text: string): string =>
  text.replace(/\s+/g, ' ').trim().slice(0, defaults.upstream.reasonChars).replace(/\.$/, '');

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const temporaryErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
]);

/** A request that came to no answer, or to half of one (`hasAnswer`). */
export function brokenFault(error: NodeJS.ErrnoException, place: Peer, hasAnswer: boolean): ModelError {
  if (error instanceof ModelError) return error;
  const { address } = place;
  const code = error.code ?? '';
  if (code.startsWith('HPE_')) {
    return new ModelError('upstreamProtocol', `The upstream at ${address} does not speak HTTP (${code}).`, {
      isRetryable: false,
    });
  }
  if (hasAnswer) return cutFault();
  if (code === 'ERR_PROXY_TUNNEL') return proxyRefusedFault(place, (error as { statusCode?: unknown }).statusCode);
  if (code === 'ECONNREFUSED' && place.proxy === undefined && isLoopback(new URL(`http://${place.address}`).hostname))
    return notListeningFault(place);
  const reason = code || 'no reason given';
  return new ModelError(
    'upstreamUnreachable',
    `The upstream at ${address} cannot be reached${through(place)}: ${reason}.`,
    {
      isRetryable: temporaryErrors.has(code),
    },
  );
}

/** Commands that start local model servers, by their usual ports. */
const startCommands: Readonly<Record<string, string>> = {
  '1234': 'lms server start',
  '8000': 'vllm serve MODEL',
  '8080': 'llama-server -m FILE',
  '11434': 'ollama serve',
};
/** Repetitions for a local server that is started again: seven seconds. Longer waiting starts no server. */
const localRetries = 4;

function notListeningFault({ address }: Peer): ModelError {
  const command = startCommands[address.slice(address.lastIndexOf(':') + 1)];
  const start = `Start the model server${command === undefined ? '' : ` (${command})`}`;
  const message = `The upstream at ${address} cannot be reached: ECONNREFUSED. Nothing listens there. ${start}, or correct EndPoint; oratorio model names its file.`;
  return new ModelError('upstreamUnreachable', message, { maxRetries: localRetries });
}

/** Failure of a proxy that opens no connection, or requires a user name. */
export function proxyRefusedFault({ address, proxy = '' }: Peer, status: unknown): ModelError {
  const isNumber = typeof status === 'number';
  const remedy =
    status === 407
      ? 'Put name and password into its URL: http://NAME:PASSWORD@HOST:PORT.'
      : 'Allow the host there, or except it with NO_PROXY.';
  const reason = isNumber ? `answered ${status}` : 'answered nothing readable';
  return new ModelError('upstreamUnreachable', `The proxy ${proxy} ${reason} for ${address}. ${remedy}`, {
    isRetryable: isNumber && status >= 500 && status !== 501,
  });
}

export function cutFault(): ModelError {
  return new ModelError('upstreamProtocol', 'The upstream broke off in the middle of its answer.');
}

/** An upstream that sends nothing, not even a sign of life. */
export function silentFault(place: Peer, idleMs: number, hasAnswer: boolean): ModelError {
  const code = hasAnswer ? 'upstreamFailed' : 'upstreamUnreachable';
  return new ModelError(code, `The upstream at ${place.address} was silent${through(place)} for ${idleMs} ms.`);
}

/** An upstream that answers 101. Node ends such a request without an error. */
export function switchedFault({ address }: Peer): ModelError {
  return new ModelError(
    'upstreamProtocol',
    `The upstream at ${address} switched to another protocol (101). Correct EndPoint.`,
    { isRetryable: false },
  );
}

/** An upstream that sends interim answers (1xx) and never a final one. */
export function interimFault({ address }: Peer): ModelError {
  const { interimAnswers } = defaults.upstream;
  return new ModelError(
    'upstreamProtocol',
    `The upstream at ${address} sent more than ${interimAnswers} interim answers (1xx) and no final one.`,
  );
}
