import { defaults } from '../../protocol/index.ts';
import { boundedFetch } from '../bounded-fetch.ts';
import type { FetchLike } from '../library.ts';
import { requireSecure } from './subject.ts';

/**
 * `fetch` for the metadata and tokens of a server: encrypted, with a deadline, short answers, and redirects left to the caller.
 *
 * @throws McpFailure for an address to which nothing may be sent
 */
export function authFetch(server: URL, signal?: AbortSignal): FetchLike {
  const { requestMs, answerBytes } = defaults.mcp.oauth;
  const bounded = boundedFetch(answerBytes);
  return async (url, init = {}) => {
    requireSecure(new URL(url), server);
    const signals = [AbortSignal.timeout(requestMs), signal, init.signal].filter((each) => each != null);
    return bounded(url, { ...init, redirect: 'manual', signal: AbortSignal.any(signals) });
  };
}
