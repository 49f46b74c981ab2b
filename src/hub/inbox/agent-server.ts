/** The inbox of one agent server, over HTTP on the listener of its WebSocket. */
import * as v from 'valibot';
import { SseParser } from '../../client/index.ts';
import { askLocal } from '../../lib/index.ts';
import {
  defaults,
  type InboxAnswer,
  InboxDecision,
  type InboxFeedEvent,
  inboxFeed,
  inboxFeedPath,
} from '../../protocol/index.ts';

/** `ws://127.0.0.1:41235/ws?token=…`, as an agent server publishes it. */
type Endpoint = string;

const answerBytes = 16_384;

/** Origin and token of an agent server's address. @throws TypeError for text that is not a URL */
export function addressOf(endpoint: Endpoint): { readonly origin: URL; readonly token: string } {
  const { host, searchParams } = new URL(endpoint);
  return { origin: new URL(`http://${host}`), token: searchParams.get('token') ?? '' };
}

export type FeedEvent = {
  [E in InboxFeedEvent]: { readonly event: E; readonly data: v.InferOutput<(typeof inboxFeed)[E]> };
}[InboxFeedEvent];

export interface InboxReader {
  /** Bytes have arrived: an event, a part of one, or a comment that says that the server lives. */
  readonly onSign: () => void;
  readonly onEvent: (event: FeedEvent) => void;
}

/**
 * Reads the feed until it ends. Resolves with the status of an answer that is not a feed, or null when the stream has ended.
 *
 * @throws Error when the connection fails or is silent for too long
 */
export async function readInbox(
  endpoint: Endpoint,
  signal: AbortSignal,
  reader: InboxReader,
  // Three heartbeats.
  silenceMs = 3 * defaults.sse.heartbeatMs,
): Promise<number | null> {
  const { origin, token } = addressOf(endpoint);
  const parser = new SseParser({
    onMessage({ event, data }) {
      const parsed = parseEvent(event, data);
      if (parsed) reader.onEvent(parsed);
    },
  });
  const decoder = new TextDecoder();
  try {
    const answer = await askLocal(new URL(inboxFeedPath, origin), {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
      ...{ signal, silenceMs, connection: false, takesRedirect: true },
    });
    reader.onSign();
    if (answer.status !== 200) {
      answer.cancel();
      return answer.status;
    }
    for await (const chunk of answer.chunks()) {
      reader.onSign();
      parser.push(decoder.decode(chunk, { stream: true }));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return null;
}

/** Undefined for an event that this version does not know. */
function parseEvent(name: string, data: string): FeedEvent | undefined {
  if (!Object.hasOwn(inboxFeed, name)) return undefined;
  const event = name as InboxFeedEvent;
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), inboxFeed[event]), data);
  return parsed.success ? ({ event, data: parsed.output } as FeedEvent) : undefined;
}

const Refusal = v.object({
  error: v.object({ code: v.string(), message: v.optional(v.string(), ''), details: v.optional(v.unknown()) }),
});

/** Outcome of an answer to a request. */
export type AnswerOutcome =
  | { readonly kind: 'decided'; readonly made: InboxDecision }
  | { readonly kind: 'alreadyDecided'; readonly made: InboxDecision }
  /** The answer does not fit the question, which still waits. */
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'unknown' };

/** @throws Error when the agent server does not answer, or answers with something else */
export async function answerRequest(
  endpoint: Endpoint,
  requestId: string,
  answer: InboxAnswer,
  signal: AbortSignal,
): Promise<AnswerOutcome> {
  const { origin, token } = addressOf(endpoint);
  const response = await askLocal(new URL(`${inboxFeedPath}/${encodeURIComponent(requestId)}`, origin), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(answer),
    ...{ signal, deadlineMs: defaults.supervise.probeTimeoutMs, connection: false, takesRedirect: true },
  });
  const { status } = response;
  const text = await response.text(answerBytes);
  if (status === 200) {
    return { kind: 'decided', made: v.parse(v.pipe(v.string(), v.parseJson(), InboxDecision), text) };
  }
  const refusal = v.safeParse(v.pipe(v.string(), v.parseJson(), Refusal), text);
  const { code, message, details } = refusal.success
    ? refusal.output.error
    : { code: '', message: '', details: undefined };
  if (status === 409 && code === 'alreadyDecided')
    return { kind: 'alreadyDecided', made: v.parse(InboxDecision, details) };
  if (status === 400 && code === 'questionInvalid') return { kind: 'invalid', message };
  if (status === 404 && code === 'approvalNotFound') return { kind: 'unknown' };
  throw new Error(`it answered ${status}`);
}
