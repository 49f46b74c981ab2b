import type { Reply, SseSource } from '../http/index.ts';

/** A token in an address: of a WebSocket in its query, of a page in its fragment. */
const tokens = /([?&#]token=)[^"&#\\\s]+/g;

/** Hides the tokens of addresses in a text. */
export const withoutTokens = (text: string): string => text.replace(tokens, '$1***');

const sources = new WeakMap<SseSource, SseSource>();

/** The source without tokens; the same one for all its readers, so that they share one subscription. */
function maskedSource(source: SseSource): SseSource {
  const known = sources.get(source);
  if (known) return known;
  const mask = (frame: Uint8Array): Uint8Array => {
    const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    return bytes.includes('token=') ? Buffer.from(withoutTokens(bytes.toString())) : frame;
  };
  const made: SseSource = {
    replay: (lastEventId) => source.replay(lastEventId).map(mask),
    subscribe: (listener, onEnd) => source.subscribe((batch) => listener(mask(batch)), onEnd),
  };
  sources.set(source, made);
  return made;
}

/** The answer of a route as a page may have it: a page holds the page token and no other. */
export function withoutTokensOf(reply: Reply): Reply {
  if (reply.kind === 'sse') return { ...reply, source: maskedSource(reply.source) };
  if (reply.kind !== 'bytes' || reply.body.length === 0) return reply;
  const body = typeof reply.body === 'string' ? reply.body : Buffer.from(reply.body).toString();
  return { ...reply, body: withoutTokens(body) };
}
