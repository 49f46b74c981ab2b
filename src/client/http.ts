import * as v from 'valibot';
import { askLocal, type HttpAnswer, isLoopback, messageOf } from '../lib/index.ts';
import { ErrorAnswer } from './answers.ts';
import { HubInvalidResponseError, HubRequestError, HubUnavailableError } from './errors.ts';

/** Address and token of a Hub. */
export interface HubAddress {
  readonly apiBaseUrl: string;
  /** Absent: only `GET /v1/status` is possible. */
  readonly token?: string;
  /** Unix socket of a tunnel to this address. */
  readonly socketPath?: string;
  /** Size limit of an answer in bytes; a longer answer is invalid. Absent: no limit. */
  readonly maxAnswerBytes?: number;
}

export interface HubRequest {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Whether the request may be sent a second time when the connection was lost before an answer. */
  readonly idempotent?: boolean;
  /** Called before the second attempt; a rejection replaces this attempt. */
  readonly beforeRetry?: (() => Promise<void>) | undefined;
}

/** Whether `url` names a plain HTTP server on this machine: the token goes nowhere else. */
export function isLoopbackHttp(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (protocol !== 'http:' || username !== '' || password !== '') return false;
  return isLoopback(hostname);
}

/** Error codes of a connection that the server has closed while it was idle. */
const connectionLost = new Set(['ECONNRESET', 'EPIPE']);

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined;

function send(address: HubAddress, request: HubRequest): Promise<HttpAnswer> {
  const url = new URL(`${address.apiBaseUrl.replace(/(?<!\/)\/+$/, '')}${request.path}`);
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return askLocal(url, {
    method: request.method,
    headers: {
      ...(address.token !== undefined && { authorization: `Bearer ${address.token}` }),
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    ...{ signal: request.signal, socketPath: address.socketPath },
  });
}

/**
 * Sends one request and returns its successful answer.
 *
 * @throws HubRequestError with the Hub's error object, HubUnavailableError without an answer, HubInvalidResponseError
 *   for the answer of another program, and the reason of `request.signal` when it aborts
 */
export async function callHub(address: HubAddress, request: HubRequest): Promise<HttpAnswer> {
  if (!isLoopbackHttp(address.apiBaseUrl)) {
    throw new HubUnavailableError(`${address.apiBaseUrl} is not a loopback HTTP address.`);
  }
  const response = await send(address, request)
    .catch(async (error: unknown) => {
      if (request.idempotent !== true || !connectionLost.has(codeOf(error) ?? '')) throw error;
      await request.beforeRetry?.();
      return send(address, request);
    })
    .catch((error: unknown) => {
      request.signal?.throwIfAborted();
      if (error instanceof HubUnavailableError) throw error;
      const why = codeOf(error) ?? messageOf(error);
      throw new HubUnavailableError(`The Hub at ${address.apiBaseUrl} does not answer (${why}).`, { cause: error });
    });
  if (response.isOk) return response;
  throw await refusal(response);
}

async function refusal(response: HttpAnswer): Promise<Error> {
  const document = await response.json().catch(() => undefined);
  const parsed = v.safeParse(ErrorAnswer, document);
  if (parsed.success) return new HubRequestError(response.status, parsed.output.error);
  return new HubInvalidResponseError(`HTTP ${response.status} without the error object of a Hub.`);
}

/** Calls the Hub like `callHub`, and checks the JSON of the answer against `schema`. */
export async function callHubJson<S extends v.GenericSchema>(
  address: HubAddress,
  request: HubRequest,
  schema: S,
): Promise<v.InferOutput<S>> {
  const response = await callHub(address, request);
  let document: unknown;
  try {
    document = JSON.parse(await response.text(address.maxAnswerBytes));
  } catch (error) {
    request.signal?.throwIfAborted();
    throw new HubInvalidResponseError(`The answer to ${request.path} is not JSON.`, { cause: error });
  }
  const parsed = v.safeParse(schema, document);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const where = v.getDotPath(issue) ?? 'the document';
  throw new HubInvalidResponseError(
    `The answer to ${request.path} is not a Hub's: ${where} must be ${issue.expected}.`,
  );
}
