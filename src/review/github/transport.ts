import { outgoingFetch } from '../../http/index.ts';
import { TransportError } from './errors.ts';
import type { GitHubLimits } from './limits.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/**
 * `fetch` for octokit that ends: one time limit for the response with its body, a largest size, and no other host than the
 * endpoint's (a `Link` header may name any). The body is read here, because octokit takes a truncated one for an empty one.
 */
export function createTransport(
  endpoint: string,
  limits: Pick<GitHubLimits, 'requestTimeoutMs' | 'answerBytes'>,
  { stop, onRequest }: { readonly stop: AbortSignal; readonly onRequest: () => void },
): Fetch {
  const { origin } = new URL(endpoint);
  return async (url, init) => {
    if (new URL(url).origin !== origin) throw new TransportError('invalidAnswer', 'GitHub names another host');
    const timeout = AbortSignal.timeout(limits.requestTimeoutMs);
    const given = init.signal ? [init.signal] : [];
    onRequest();
    try {
      const response = await outgoingFetch(url, { ...init, signal: AbortSignal.any([timeout, stop, ...given]) });
      const body = await bodyOf(response, limits.answerBytes);
      const { status, statusText, headers } = response;
      return new Response(mayHaveBody(status) ? body : null, { status, statusText, headers: decoded(headers) });
    } catch (error) {
      if (error instanceof TransportError) throw error;
      if (timeout.aborted) {
        throw new TransportError('timedOut', `GitHub did not answer within ${limits.requestTimeoutMs} ms`);
      }
      throw new TransportError('connectionFailed', `GitHub could not be reached: ${reasonOf(error)}`);
    }
  };
}

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
    if (size > most) throw new TransportError('invalidAnswer', `GitHub's answer is larger than ${most} bytes`);
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
