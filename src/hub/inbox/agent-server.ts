/** The inbox of one agent server, over HTTP on the listener of its WebSocket. */
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { StringDecoder } from 'node:string_decoder';
import * as v from 'valibot';
import { SseParser } from '../../client/index.ts';
import {
  defaults,
  type InboxAnswer,
  InboxDecision,
  type InboxFeedEvent,
  inboxFeed,
  inboxFeedPath,
} from '../../protocol/index.ts';
import { readFeed } from './feed-socket.ts';

/** `ws://127.0.0.1:41235/ws?token=…`, as an agent server publishes it. */
type Endpoint = string;

const answerBytes = 16_384;

function addressOf(endpoint: Endpoint): { readonly origin: URL; readonly token: string } {
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
export function readInbox(endpoint: Endpoint, signal: AbortSignal, reader: InboxReader): Promise<number | null> {
  const { origin, token } = addressOf(endpoint);
  const parser = new SseParser({
    onMessage({ event, data }) {
      const parsed = parseEvent(event, data);
      if (parsed) reader.onEvent(parsed);
    },
  });
  const decoder = new StringDecoder('utf8');
  return readFeed(
    // Three heartbeats.
    { origin, path: inboxFeedPath, token, signal, silenceMs: 3 * defaults.sse.heartbeatMs },
    { onSign: reader.onSign, onData: (piece) => parser.push(decoder.write(piece)) },
  );
}

/** Undefined for an event that this version does not know. */
function parseEvent(name: string, data: string): FeedEvent | undefined {
  if (!Object.hasOwn(inboxFeed, name)) return undefined;
  const event = name as InboxFeedEvent;
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), inboxFeed[event]), data);
  return parsed.success ? ({ event, data: parsed.output } as FeedEvent) : undefined;
}

const Refusal = v.object({ error: v.object({ code: v.string(), details: v.optional(v.unknown()) }) });

/** Outcome of an answer to a request. */
export type AnswerOutcome =
  | { readonly kind: 'decided'; readonly made: InboxDecision }
  | { readonly kind: 'alreadyDecided'; readonly made: InboxDecision }
  | { readonly kind: 'unknown' };

/** @throws Error when the agent server does not answer, or answers with something else */
export async function answerRequest(
  endpoint: Endpoint,
  requestId: string,
  answer: InboxAnswer,
  signal: AbortSignal,
): Promise<AnswerOutcome> {
  const { origin, token } = addressOf(endpoint);
  const { status, text } = await post(new URL(`${inboxFeedPath}/${encodeURIComponent(requestId)}`, origin), {
    token,
    body: JSON.stringify(answer),
    signal: AbortSignal.any([signal, AbortSignal.timeout(defaults.supervise.probeTimeoutMs)]),
  });
  if (status === 200) {
    return { kind: 'decided', made: v.parse(v.pipe(v.string(), v.parseJson(), InboxDecision), text) };
  }
  const refusal = v.safeParse(v.pipe(v.string(), v.parseJson(), Refusal), text);
  const { code, details } = refusal.success ? refusal.output.error : { code: '', details: undefined };
  if (status === 409 && code === 'alreadyDecided')
    return { kind: 'alreadyDecided', made: v.parse(InboxDecision, details) };
  if (status === 404 && code === 'approvalNotFound') return { kind: 'unknown' };
  throw new Error(`it answered ${status}`);
}

interface Posting {
  readonly token: string;
  readonly body: string;
  readonly signal: AbortSignal;
}

/** One POST on a connection of its own. @throws Error when the connection fails, or the answer is too long */
function post(url: URL, { token, body, signal }: Posting): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const outgoing = request(url, { method: 'POST', agent: false, signal, headers });
    outgoing.on('error', reject);
    outgoing.once('response', (response) => {
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > answerBytes) response.destroy(new Error('its answer is too long'));
      });
      textOf(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    outgoing.end(body);
  });
}
