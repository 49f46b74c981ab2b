import { outgoingFetch } from '../http/index.ts';
import { GitHubError } from './error.ts';

/** Version of the REST API to which our shapes belong. */
export const apiVersion = '2022-11-28';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * `fetch` for octokit with limits: one time limit for the response with its body, a size limit, and only the host of the
 * endpoint (a `Link` header or a redirect may name another). The body is read here, because octokit treats a truncated body as empty.
 */
export function createTransport(
  endpoint: string,
  limits: { readonly requestTimeoutMs: number; readonly answerBytes: number },
  { stop, onRequest }: { readonly stop?: AbortSignal | undefined; readonly onRequest?: () => void } = {},
): Fetch {
  const { origin } = new URL(endpoint);
  const send = async (url: string, init: RequestInit, redirects: number): Promise<Response> => {
    if (new URL(url).origin !== origin) throw new GitHubError('invalidAnswer', 'GitHub names another host');
    const timeout = AbortSignal.timeout(limits.requestTimeoutMs);
    const signal = AbortSignal.any([timeout, stop, init.signal].filter((each) => each != null));
    onRequest?.();
    try {
      const response = await outgoingFetch(url, { ...init, redirect: 'manual', signal });
      const body = await bodyOf(response, limits.answerBytes);
      const { status, statusText, headers } = response;
      if (status > 599) throw new GitHubError('invalidAnswer', `GitHub answered ${status}`);
      const location = headers.get('location') ?? '';
      if (init.redirect !== 'manual' && isRedirect(status) && URL.canParse(location, url)) {
        if (redirects === maxRedirects) throw new GitHubError('invalidAnswer', 'GitHub redirects too often');
        return await send(new URL(location, url).href, init, redirects + 1);
      }
      return new Response(mayHaveBody(status) ? body : null, { status, statusText, headers: decoded(headers) });
    } catch (error) {
      if (error instanceof GitHubError) throw error;
      if (timeout.aborted) {
        throw new GitHubError('timedOut', `GitHub did not answer within ${limits.requestTimeoutMs} ms`);
      }
      throw new GitHubError('connectionFailed', `GitHub could not be reached: ${reasonOf(error)}`);
    }
  };
  return (url, init) => send(url, init, 0);
}

const maxRedirects = 5;
const isRedirect = (status: number): boolean => [301, 302, 307, 308].includes(status);

const mayHaveBody = (status: number): boolean => ![204, 205, 304].includes(status);

/** Headers without the encoding: the body is already unpacked. */
function decoded(headers: Headers): Headers {
  const copy = new Headers(headers);
  copy.delete('content-encoding');
  copy.delete('content-length');
  return copy;
}

async function bodyOf(response: Response, most: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > most) throw new GitHubError('invalidAnswer', `GitHub's answer is larger than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns only the system's code: a message may hold parts of the request. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return cause instanceof Error ? cause.name : 'unknown';
}
