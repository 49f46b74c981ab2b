import type { IncomingMessage } from 'node:http';
import { type DestinationRules, findDestination } from './destination.ts';
import { refusal, WebError } from './errors.ts';
import { isSameHost, parseWebUrl } from './hosts.ts';
import { send } from './http.ts';

const maxRedirects = 5;

export interface FollowOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the host of an address may be fetched without a question. */
  readonly isApproved: (url: URL) => boolean;
}

/**
 * Fetches `url` and follows its redirects. Every hop is judged like the first one, and a connection is made only to an
 * address that was judged. A redirect to another host needs `isApproved`.
 * @returns the last answer, with its body unread, and where it came from
 * @throws WebError
 */
export async function follow(
  url: URL,
  rules: DestinationRules,
  { headers, isApproved }: FollowOptions,
  signal: AbortSignal,
): Promise<{ readonly url: URL; readonly response: IncomingMessage }> {
  let at = url;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const addresses = await findDestination(at, rules, signal);
    const response = await send({ url: at, addresses, headers }, signal);
    const { statusCode = 0, headers: answered } = response;
    if (!isRedirect(statusCode) || answered.location === undefined) return { url: at, response };
    response.destroy();
    const target = redirectTarget(at, answered.location);
    if (!isSameHost(at, target) && !isApproved(target)) throw notApproved(at, target);
    at = target;
  }
  throw new WebError(`more than ${maxRedirects} redirects`);
}

/** RFC 9110, section 15.4. */
const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

const notApproved = (from: URL, to: URL): WebError =>
  refusal(
    `${from.host} redirects to ${to.host}, which has not been approved. Call WebFetch with ${to.href} if that page is needed`,
  );

/** Resolves `location` from `base`. @throws WebError when the target is not permitted */
export function redirectTarget(base: URL, location: string): URL {
  const target = parseWebUrl(location, base);
  if (base.protocol === 'https:' && target.protocol === 'http:') {
    throw refusal(`${base.host} redirects from https to http (${target.href})`);
  }
  return target;
}
