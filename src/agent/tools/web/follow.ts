import type { IncomingMessage } from 'node:http';
import { type DestinationRules, findDestination, parseWebUrl } from './destination.ts';
import { refusal, WebError } from './errors.ts';
import { send } from './http.ts';

const maxRedirects = 5;

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
    const { statusCode = 0, headers: answered } = response;
    if (!isRedirect(statusCode) || answered.location === undefined) return { url: at, response };
    response.destroy();
    at = redirectTarget(at, answered.location);
  }
  throw new WebError(`more than ${maxRedirects} redirects`);
}

/** RFC 9110 §15.4. */
const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

/** Where `location` leads from `base`. @throws WebError when nobody may go there */
export function redirectTarget(base: URL, location: string): URL {
  const target = parseWebUrl(location, base);
  if (base.protocol === 'https:' && target.protocol === 'http:') {
    throw refusal(`${base.host} redirects from https to http (${target.href})`);
  }
  return target;
}
