import type { IncomingHttpHeaders } from 'node:http';
import type { Header, RequestContext } from '../../http/index.ts';

/**
 * Headers of a request that the agent server gets unchanged. This is an allow list: tokens,
 * cookies, origins and headers that a browser or a proxy adds stay at the Hub.
 */
const passedIn = ['accept', 'content-type', 'if-match', 'if-none-match', 'last-event-id', 'range'] as const;

/** Headers of an answer that the page gets. `Set-Cookie`, `Location` and hop-by-hop headers are missing here. */
const passedOut = [
  'cache-control',
  'content-range',
  'etag',
  'last-modified',
  'retry-after',
  'x-accel-buffering',
] as const;

export function innerHeaders(request: Pick<RequestContext, 'header'>, token: string): Record<string, string> {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  for (const name of passedIn) {
    const value = request.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

/** Control characters other than a tab: uWebSockets.js would write them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
const control = /[\u0000-\u0008\u000a-\u001f\u007f]/;

export function outerHeaders(answer: IncomingHttpHeaders): Header[] {
  const headers: Header[] = [];
  for (const name of passedOut) {
    const value = answer[name];
    if (typeof value === 'string' && !control.test(value)) headers.push([name, value]);
  }
  return headers;
}

/** Types that a browser only displays, and never runs. A page of the Hub's origin runs nothing that an agent has written. */
const inert =
  /^(?:application\/(?:json|problem\+json|x-ndjson|schema\+json)|text\/(?:plain|event-stream|csv)|image\/(?:png|jpeg|gif|webp))(?:\s*;|$)/i;

/** Content type and its companions for an answer of an agent server; anything else is a download. */
export function inertType(contentType: string | undefined): {
  readonly type: string;
  readonly headers: readonly Header[];
} {
  if (contentType !== undefined && inert.test(contentType) && !control.test(contentType))
    return { type: contentType, headers: [] };
  return { type: 'application/octet-stream', headers: [['content-disposition', 'attachment']] };
}
