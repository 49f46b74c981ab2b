import type { IncomingMessage } from 'node:http';
import { type DestinationRules, findDestination, parseWebUrl } from './destination.ts';
import { refusal, WebError } from './errors.ts';
import { send } from './http.ts';

const maxRedirects = 5;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Fetches `url`, going where it leads. Every hop is judged like the first one, and only to the addresses that were judged
 * is a connection made.
 * @returns the last answer, with its body unread, and where it came from
 * @throws WebError
 */
export async function follow(
  url: URL,
  rules: DestinationRules,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ readonly url: URL; readonly response: IncomingMessage }> {
  let at = url;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const addresses = await findDestination(at, rules, signal);
    const response = await send({ url: at, addresses, headers }, signal);
    const next = locationOf(response, at);
    if (!next) return { url: at, response };
    response.destroy();
    if (at.protocol === 'https:' && next.protocol === 'http:') {
      throw refusal(`${at.host} redirects from https to http (${next.href})`);
    }
    at = next;
  }
  throw new WebError(`more than ${maxRedirects} redirects`);
}

/** Where an answer sends us (RFC 9110 §15.4); undefined: nowhere. */
function locationOf(response: IncomingMessage, base: URL): URL | undefined {
  const { statusCode = 0, headers } = response;
  if (!redirects.has(statusCode) || headers.location === undefined) return undefined;
  try {
    return parseWebUrl(headers.location, base);
  } catch (error) {
    response.destroy();
    throw error;
  }
}
