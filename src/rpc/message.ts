import { wellFormedJson } from '../lib/browser.ts';

/** Id of a request. Null is refused, so that an answer always belongs to a question. */
export type RpcId = string | number;

/** Codes of JSON-RPC 2.0, section 5.1. */
export const rpcCodes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
} as const;

/** The `error` member of an answer. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  /** Details for programs. */
  readonly data?: unknown;
}

/**
 * The other side has answered a request with a JSON-RPC error. Thrown by the handler of a request, it becomes the answer.
 *
 * @example if (error instanceof JsonRpcError && error.code === -32601) console.error('an older agent server');
 */
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError';
  readonly code: number;
  readonly data: unknown;

  constructor(error: ErrorBody) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

export interface InvalidMessage {
  readonly kind: 'invalid';
  /** Id of the message, if it has one. */
  readonly id: RpcId | null;
  readonly error: 'parseError' | 'invalidRequest';
  readonly reason: string;
}

/** One received text, classified. */
export type Message =
  | { readonly kind: 'request'; readonly id: RpcId; readonly method: string; readonly params: unknown }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  /** `error` is undefined in a successful response. */
  | { readonly kind: 'response'; readonly id: RpcId | null; readonly result: unknown; readonly error: unknown }
  | InvalidMessage;

type Members = Readonly<Partial<Record<'jsonrpc' | 'id' | 'method' | 'params' | 'error' | 'result', unknown>>>;

/**
 * Classifies a text by JSON-RPC 2.0, sections 4 to 6. Never throws. Written by hand, because the page pays for each kilobyte.
 *
 * @param isStrict false: also takes messages without `jsonrpc`, and answers with neither result nor error, of programs that
 * leave them out
 */
export function readMessage(text: string, isStrict = true): Message {
  let value: unknown;
  try {
    value = JSON.parse(wellFormedJson(text));
  } catch {
    return invalid('the frame is not JSON', null, 'parseError');
  }
  if (Array.isArray(value)) return invalid('batches are not supported');
  if (!isObject(value)) return invalid('the message is not an object');
  const { jsonrpc, id, method, params, result, error } = value as Members;
  const isSpoken = jsonrpc === '2.0' || !isStrict;
  const knownId = isId(id, isStrict) ? id : null;
  if (typeof method !== 'string' && (method === undefined || !isStrict)) {
    const isAnswer = !isStrict || (id === null && isErrorBody(error)) || (knownId !== null && isOutcome(value));
    if (!isSpoken || !isAnswer) return invalid('method is missing', knownId);
    const isError = isStrict ? isErrorBody(error) : error !== null;
    return { kind: 'response', id: knownId, result, error: isError ? error : undefined };
  }
  if (!isSpoken) return invalid('jsonrpc must be "2.0"', knownId);
  const isNotification = id === undefined || (id === null && !isStrict);
  if (!isNotification && knownId === null) return invalid('id must be a string or a whole number');
  if (typeof method !== 'string') return invalid('method must be a string', knownId);
  if (isStrict && params !== undefined && !isObject(params)) return invalid('params must be an object', knownId);
  return knownId === null ? { kind: 'notification', method, params } : { kind: 'request', id: knownId, method, params };
}

const invalid = (
  reason: string,
  id: RpcId | null = null,
  error: InvalidMessage['error'] = 'invalidRequest',
): InvalidMessage => ({ kind: 'invalid', id, error, reason });

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isId = (id: unknown, isStrict: boolean): id is RpcId =>
  typeof id === 'string' || (isStrict ? Number.isSafeInteger(id) : typeof id === 'number');

const isOutcome = (answer: object): boolean => 'result' in answer || ('error' in answer && isErrorBody(answer.error));

function isErrorBody(error: unknown): error is ErrorBody {
  const { code, message } = (isObject(error) ? error : {}) as Partial<ErrorBody>;
  return typeof code === 'number' && typeof message === 'string';
}

/** JSON of one message. Texts of other programs may hold lone surrogates, which strict readers refuse. */
export function messageText(members: Members | { readonly error: ErrorBody }): string {
  return wellFormedJson(JSON.stringify({ jsonrpc: '2.0', ...members }));
}
