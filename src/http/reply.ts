import type { Readable } from 'node:stream';
import { wellFormedJson } from '../lib/index.ts';
import type { Header } from './http-error.ts';
import type { Reply, ReplyStream, SseSource } from './types.ts';

type BytesReply = Extract<Reply, { kind: 'bytes' }>;

const jsonHeaders: readonly Header[] = [['content-type', 'application/json']];
const textHeaders: readonly Header[] = [['content-type', 'text/plain; charset=utf-8']];
const noHeaders: readonly Header[] = [];

/** uWebSockets.js checks no value: a line break in one would let a caller forge headers (RFC 9110, section 5.5). */
function checked(headers: readonly Header[]): readonly Header[] {
  for (const [name, value] of headers) {
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) throw new TypeError(`not a lower-case header name: ${name}`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: finds control characters
    if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) throw new TypeError(`control character in header ${name}`);
  }
  return headers;
}

function merged(base: readonly Header[], extra: readonly Header[] | undefined): readonly Header[] {
  return extra === undefined || extra.length === 0 ? base : [...base, ...checked(extra)];
}

/** `value` serialised once, now. */
export function json(status: number, value: unknown, headers?: readonly Header[]): BytesReply {
  return { kind: 'bytes', status, headers: merged(jsonHeaders, headers), body: wellFormedJson(JSON.stringify(value)) };
}

/** A body that is JSON already. Make the reply once and return it every time: that is the fastest answer there is. */
export function jsonBytes(status: number, body: Uint8Array, headers?: readonly Header[]): BytesReply {
  return { kind: 'bytes', status, headers: merged(jsonHeaders, headers), body };
}

export function text(status: number, body: string, headers?: readonly Header[]): BytesReply {
  return { kind: 'bytes', status, headers: merged(textHeaders, headers), body };
}

/** Any other content. Throws TypeError for a header that cannot be sent safely. */
export function bytes(
  status: number,
  contentType: string,
  body: Uint8Array | string,
  headers: readonly Header[] = [],
): BytesReply {
  return { kind: 'bytes', status, headers: checked([['content-type', contentType], ...headers]), body };
}

/** No content at all: 204, or 304 with its validators. */
export function empty(status = 204, headers?: readonly Header[]): BytesReply {
  return { kind: 'bytes', status, headers: merged(noHeaders, headers), body: '' };
}

/** An event stream: the events that `source` replays for `lastEventId`, then its new ones until it ends. */
export function sse(source: SseSource, lastEventId: string | undefined): Reply {
  return { kind: 'sse', source, lastEventId };
}

/** A body that another stream delivers, at the pace of the client. Throws TypeError for a header that cannot be sent safely. */
export function pipe(status: number, contentType: string, body: Readable, headers: readonly Header[] = []): Reply {
  return { kind: 'pipe', status, headers: checked([['content-type', contentType], ...headers]), body };
}

/** A body that is written as it comes. Throws TypeError for a header that cannot be sent safely. */
export function stream(
  status: number,
  contentType: string,
  open: (stream: ReplyStream) => void,
  headers: readonly Header[] = [],
): Reply {
  return { kind: 'stream', status, headers: checked([['content-type', contentType], ...headers]), open };
}
