/** Requests to the server that served this page. */
export interface Api {
  /** JSON of `path` (from the root). Rejects with `ApiError` when the server refuses the request or does not answer. */
  get<T>(path: string, signal?: AbortSignal): Promise<T>;
  /** Text of `path`. */
  text(path: string, signal?: AbortSignal): Promise<string>;
  send<T>(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<T>;
  /** A shell command that makes the same request; the token comes from an environment variable. */
  curl(path: string): string;
}

/** Error with the server's own message; `status` 0: the server could not be reached. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string;
  /** Details of the error, e.g. `{issues: [{keyPath, expected}]}`. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

interface ErrorBody {
  readonly error?: {
    readonly code?: string;
    readonly message?: string;
    readonly details?: Record<string, unknown> | null;
  };
}

/** Error of a request that the server refused, in its own words. */
export async function refusal(response: Response): Promise<ApiError> {
  const answer = (await response.json().catch(() => null)) as ErrorBody | null;
  const { code = 'unknown', message = `The server answered ${response.status}.`, details } = answer?.error ?? {};
  return new ApiError(response.status, code, message, details ?? {});
}

/**
 * @param token resolves with the token when the server has proved itself, null without one; rejects with `ApiError`
 * @param onRefused called when the server does not accept the token (any more)
 * @param base see `Server.base`
 */
export function createApi(token: () => Promise<string | null>, onRefused: () => void, base: string): Api {
  async function request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Response> {
    const bearer = await token();
    signal?.throwIfAborted();
    const response = await fetch(addressAt(base, path), {
      method,
      headers: {
        ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    }).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      throw new ApiError(0, 'unreachable', 'The server cannot be reached.');
    });
    if (response.ok) return response;
    if (response.status === 401) onRefused();
    throw await refusal(response);
  }

  return {
    get: async (path, signal) => (await request('GET', path, undefined, {}, signal)).json(),
    text: async (path, signal) => (await request('GET', path, undefined, {}, signal)).text(),
    send: async (method, path, body, headers) => {
      const text = await (await request(method, path, body, headers)).text();
      return text === '' ? null : JSON.parse(text);
    },
    curl: (path) =>
      `curl -H "authorization: Bearer $ORATORIO_TOKEN" '${new URL(addressAt(base, path), location.origin).href.replaceAll("'", '%27')}'`,
  };
}

/** Address of `path` at a server. Below a base, the server serves only paths that begin with `/dashboard/`. */
function addressAt(base: string, path: string): string {
  if (base === '') return path;
  return path.toLowerCase().startsWith('/dashboard/') ? `${base}${path}` : `${base}/dashboard${path}`;
}
