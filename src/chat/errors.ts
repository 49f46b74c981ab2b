import { AgentError, ModelError, type ModelErrorCode } from '../agent/index.ts';
import { type ErrorBody, type Header, HttpError } from '../http/index.ts';
import { defaults, type TurnError } from '../protocol/index.ts';

type ErrorType = 'invalid_request_error' | 'rate_limit_error' | 'upstream_error' | 'server_error';

interface Row {
  readonly status: number;
  readonly type: ErrorType;
  readonly code: string;
  /** For the document: when it happens. */
  readonly when: string;
}

const row = (status: number, type: ErrorType, code: string, when: string): Row => ({ status, type, code, when });
const invalid = (status: number, code: string, when: string) => row(status, 'invalid_request_error', code, when);
const upstream = (status: number, code: string, when: string) => row(status, 'upstream_error', code, when);
const server = (status: number, code: string, when: string) => row(status, 'server_error', code, when);

/** Every error of the chat API, each once: status, `error.type`, `error.code`. `docs/chat-api.md` shows this table. */
export const chatErrors = {
  unauthorized: invalid(401, 'invalid_api_key', 'the bearer key is missing or wrong'),
  invalidJson: invalid(400, 'invalid_json', 'the body is not JSON in UTF-8'),
  missingParameter: invalid(400, 'missing_required_parameter', 'a field that is needed is absent; `param` names it'),
  invalidParameter: invalid(400, 'invalid_parameter', 'a field has a wrong type or value; `param` names it'),
  unsupportedParameter: invalid(400, 'unsupported_parameter', '`n` above 1, audio, log probabilities, …'),
  unsupportedContentType: invalid(400, 'unsupported_content_type', 'a part of a message is neither text nor image'),
  unsupportedMediaType: invalid(415, 'unsupported_media_type', 'the content type is not `application/json`'),
  contextTooLong: invalid(
    400,
    'context_length_exceeded',
    'the conversation does not fit into the context of the model',
  ),
  upstreamRejected: invalid(400, 'upstream_rejected', 'the model provider refused the request'),
  upstreamQuotaExceeded: upstream(
    402,
    'insufficient_quota',
    'the account at the model provider has no credit or quota left',
  ),
  budgetReached: invalid(402, 'budget_reached', 'a budget in the settings is used up'),
  invalidRequest: invalid(400, 'invalid_request', 'the request is not valid HTTP, or its path is not'),
  hostNotAllowed: invalid(403, 'host_not_allowed', 'the Host header names a host that is not served'),
  originNotAllowed: invalid(403, 'origin_not_allowed', 'the request comes from a page of another origin'),
  notFound: invalid(404, 'unknown_url', 'there is no such path'),
  modelNotFound: invalid(404, 'model_not_found', '`GET /v1/models/{id}` of a model that is not listed'),
  approvalNotFound: invalid(404, 'approval_not_found', 'nothing of that id waits for a decision'),
  responseNotFound: invalid(404, 'response_not_found', 'no response with this id is stored'),
  previousResponseNotFound: invalid(
    400,
    'previous_response_not_found',
    'no response with this id is stored, or its turn never began',
  ),
  responseInProgress: invalid(
    409,
    'response_in_progress',
    'the response is still in progress: cancel it before you delete it',
  ),
  methodNotAllowed: invalid(405, 'method_not_allowed', 'the path has other methods; `Allow` names them'),
  requestTimeout: invalid(408, 'request_timeout', 'the body did not arrive in time'),
  payloadTooLarge: invalid(413, 'request_too_large', 'the body is larger than 32 MiB'),
  idempotencyKeyReused: invalid(422, 'idempotency_key_reused', 'the `Idempotency-Key` came with another body before'),
  sessionArchived: invalid(422, 'session_archived', 'the thread of the session is archived'),
  turnInterrupted: invalid(422, 'turn_interrupted', 'the turn was interrupted before it had an answer'),
  outcomeUnknown: row(
    422,
    'server_error',
    'outcome_unknown',
    'the agent server ended during the turn of this `Idempotency-Key` or retry: nothing is run again',
  ),
  resumeFailed: row(
    422,
    'server_error',
    'resume_failed',
    'the turn could not continue after the end of its agent server',
  ),
  resumedTooOften: row(422, 'server_error', 'resumed_too_often', 'the agent server ended several times in the turn'),
  agentInterrupted: row(422, 'server_error', 'agent_interrupted', 'the external agent ended with the agent server'),
  promptBlocked: invalid(422, 'prompt_blocked', 'a hook blocked the prompt'),
  agentUnsuited: invalid(422, 'agent_unsuited', 'the external agent must not do this turn'),
  headersTooLarge: invalid(431, 'headers_too_large', 'the headers are too large'),
  sessionBusy: row(429, 'rate_limit_error', 'session_busy', 'too many requests wait for this session already'),
  concurrencyLimit: row(429, 'rate_limit_error', 'concurrency_limit', '`Api.MaxConcurrentTurns` turns run already'),
  upstreamRateLimited: row(429, 'rate_limit_error', 'upstream_rate_limit', 'the model provider wants to be left alone'),
  internalError: server(500, 'internal_error', 'a bug; the message has an id that is in the log'),
  storageFailed: server(500, 'storage_failed', 'the turn could not be saved: the disk is full or cannot be written'),
  upstreamUnauthorized: upstream(502, 'upstream_auth', 'the model provider refused the key of this server'),
  upstreamUnreachable: upstream(502, 'upstream_unreachable', 'the model provider cannot be reached or broke off'),
  upstreamFailed: upstream(502, 'upstream_failed', 'the model provider failed'),
  upstreamProtocol: upstream(502, 'upstream_protocol', 'the model provider answered with something unintelligible'),
  upstreamEmptyAnswer: upstream(502, 'upstream_empty_answer', "the model's answer has neither text nor a call"),
  answerTooLong: upstream(502, 'answer_too_long', "the model's answer is longer than a turn allows"),
  agentUnavailable: upstream(502, 'agent_unavailable', 'the external agent cannot be started'),
  agentLoginRequired: upstream(502, 'agent_login_required', 'the external agent wants a log-in'),
  agentError: upstream(502, 'agent_error', 'the external agent failed'),
  agentExited: upstream(502, 'agent_exited', 'the external agent has ended in the turn'),
  shuttingDown: server(503, 'shutting_down', 'the server is shutting down'),
  programReplaced: server(503, 'program_replaced', 'an upgrade replaced the program of the agent server: restart it'),
  deadlineExceeded: server(503, 'deadline_exceeded', 'the request was not finished in time'),
} satisfies Readonly<Record<string, Row> & Record<ModelErrorCode, Row>>;
export type ChatErrorName = keyof typeof chatErrors;

/** Shape of `error` in a body or in a stream. */
export interface ErrorObject {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

export interface ChatErrorOptions {
  /** Path of the field that is wrong, e.g. `messages[0].content`. */
  readonly param?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  /** False: clients must not retry by themselves. */
  readonly isRetryable?: boolean;
}

/**
 * Errors that no retry makes better, although client libraries repeat some of their statuses. A turn of an external agent may have changed files.
 */
const neverRetried: ReadonlySet<ChatErrorName> = new Set([
  'upstreamUnauthorized',
  'upstreamQuotaExceeded',
  'budgetReached',
  'sessionBusy',
  'outcomeUnknown',
  'resumeFailed',
  'resumedTooOften',
  'agentInterrupted',
  'storageFailed',
  'agentUnavailable',
  'agentLoginRequired',
  'agentError',
  'agentExited',
]);

/** Made by `chatError`: `details` of the `HttpError` has the fields of this API. */
interface ChatDetails {
  readonly chat: Pick<ErrorObject, 'type' | 'param'>;
}

/** An error of the table, to be thrown by a handler. */
export function chatError(name: ChatErrorName, message: string, options: ChatErrorOptions = {}): HttpError {
  const { status, type, code } = chatErrors[name];
  const { param = null, retryAfterMs, isRetryable = !neverRetried.has(name) } = options;
  const headers: Header[] = [];
  if (retryAfterMs !== undefined) headers.push(['retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1000)))]);
  if (!isRetryable) headers.push(['x-should-retry', 'false']);
  const details: ChatDetails = { chat: { type, param } };
  return new HttpError(status, code, message, details, headers);
}

export const invalidParameter = (param: string, message: string) => chatError('invalidParameter', message, { param });

/** The error for a client that must not try again: tools have run. */
export function withoutRetry(error: HttpError): HttpError {
  if (error.headers.some(([name]) => name === 'x-should-retry')) return error;
  const { status, code, message, details, headers } = error;
  return new HttpError(status, code, message, details, [...headers, ['x-should-retry', 'false']]);
}

/** An error of the HTTP layer by its name there; those names are in the table too. */
function rowOf(code: string): Row | undefined {
  return Object.hasOwn(chatErrors, code) ? chatErrors[code as ChatErrorName] : undefined;
}

/** Error bodies of the paths below `/v1/`, for every source: pass it to the server that has these routes. */
export function chatErrorBody(error: Omit<Parameters<ErrorBody>[0], 'path'>): { readonly error: ErrorObject } {
  const { status, code, message, details } = error;
  const chat = (details as Partial<ChatDetails> | undefined)?.chat;
  if (chat) return { error: { message, type: chat.type, param: chat.param, code } };
  const known = rowOf(code);
  const type = known?.type ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return { error: { message, type, param: null, code: known?.code ?? code } };
}

/** Error in the middle of an answer. */
export const errorObjectOf = (error: HttpError): ErrorObject => chatErrorBody(error).error;

/** Error of a failed turn for the caller. Codes of turns are open: an unknown one is our own fault. */
export function turnFailure(error: TurnError & { readonly retryAfterMs?: number | undefined }): HttpError {
  const { code, message, retryAfterMs } = error;
  const name = code === 'overloaded' ? 'shuttingDown' : code;
  // The message of a bug is for the log.
  if (name === 'internalError' || !rowOf(name)) return chatError('internalError', 'The turn failed because of a bug.');
  return chatError(name as ChatErrorName, message, { retryAfterMs });
}

const agentErrors: Partial<Record<AgentError['reason'], ChatErrorName>> = {
  overloaded: 'shuttingDown',
  storageFailed: 'storageFailed',
  threadNotActive: 'sessionArchived',
  turnInProgress: 'sessionBusy',
  approvalNotFound: 'approvalNotFound',
  approvalTimeout: 'approvalNotFound',
};

/**
 * Converts an error from the preparation of a turn to one of this API; an error that is neither of the runtime, nor of
 * the model's provider, is a bug and comes back unchanged.
 */
export function explained(error: unknown): unknown {
  if (error instanceof AgentError) {
    const name = agentErrors[error.reason];
    if (!name) return error;
    const detail = error.detail === undefined ? '' : `: ${error.detail}`;
    return chatError(
      name,
      `${error.message}${detail}.`,
      name === 'shuttingDown' ? { retryAfterMs: defaults.chat.retryAfterMs } : {},
    );
  }
  if (error instanceof ModelError) return turnFailure(error);
  return error;
}

/** The agent server ended in the turn, which does not continue. */
export const outcomeUnknown = (): HttpError =>
  chatError(
    'outcomeUnknown',
    'The agent server ended while this turn ran. Its tools may have taken effect, so the turn is not run again: check the workspace, then send the request with another Idempotency-Key.',
  );
