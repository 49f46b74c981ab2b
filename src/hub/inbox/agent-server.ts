/** The inbox of one agent server, over HTTP on the listener of its WebSocket. */
import { type IncomingMessage, request } from 'node:http';
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

/**
 * Reads the feed until it ends. Resolves with the status of an answer that is no feed, or null when the stream has ended.
 *
 * @throws Error when the connection fails or is silent for too long
 */
export async function readInbox(
  endpoint: Endpoint,
  signal: AbortSignal,
  onEvent: (event: FeedEvent) => void,
): Promise<number | null> {
  const { origin, token } = addressOf(endpoint);
  const response = await open(origin, token, signal);
  if (response.statusCode !== 200) {
    response.destroy();
    return response.statusCode ?? 0;
  }
  const parser = new SseParser({
    onMessage({ event, data }) {
      const parsed = parseEvent(event, data);
      if (parsed) onEvent(parsed);
    },
  });
  response.setEncoding('utf8');
  for await (const text of response) parser.push(String(text));
  return null;
}

function open(origin: URL, token: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(origin, {
      path: inboxFeedPath,
      agent: false,
      signal,
      headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
    });
    // Three heartbeats.
    outgoing.setTimeout(3 * defaults.sse.heartbeatMs, () => outgoing.destroy(new Error('the agent server is silent')));
    outgoing.once('response', resolve);
    outgoing.on('error', reject);
    outgoing.end();
  });
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
  const response = await fetch(new URL(`${inboxFeedPath}/${encodeURIComponent(requestId)}`, origin), {
    method: 'POST',
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(defaults.supervise.probeTimeoutMs)]),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(answer),
  });
  const text = await response.text();
  if (text.length > answerBytes) throw new Error('its answer is too long');
  if (response.status === 200) {
    return { kind: 'decided', made: v.parse(v.pipe(v.string(), v.parseJson(), InboxDecision), text) };
  }
  const refusal = v.safeParse(v.pipe(v.string(), v.parseJson(), Refusal), text);
  const { code, details } = refusal.success ? refusal.output.error : { code: '', details: undefined };
  if (response.status === 409 && code === 'alreadyDecided')
    return { kind: 'alreadyDecided', made: v.parse(InboxDecision, details) };
  if (response.status === 404 && code === 'approvalNotFound') return { kind: 'unknown' };
  throw new Error(`it answered ${response.status}`);
}
