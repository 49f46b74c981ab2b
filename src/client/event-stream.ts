import { exponentialBackoffMs, jitters, messageOf } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { HubInvalidResponseError, HubRequestError, HubUnavailableError } from './errors.ts';
import { callHub, type HubAddress } from './http.ts';
import { type SseMessage, SseParser } from './sse-parser.ts';

export interface StreamOptions {
  readonly path: string;
  readonly signal?: AbortSignal | undefined;
  /** Resumes after this event. Absent: from now on. */
  readonly lastEventId?: string | undefined;
  /** Called each time the stream is open: from then on nothing is missed. */
  readonly onOpen?: (() => void) | undefined;
  /** Called before each pause in which the stream is down. */
  readonly onLost?: ((reason: string, delayMs: number) => void) | undefined;
  /** Resolves with the address to use from now on; null when no Hub can be found at the moment. */
  readonly relocate?: ((signal: AbortSignal) => Promise<HubAddress | null>) | undefined;
  /** Has the server prove itself, before each connection. Rejects with HubUnavailableError when it does not. */
  readonly prove?: ((address: HubAddress, signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether a message announces the final end of the stream. */
  readonly isLast?: (message: SseMessage) => boolean;
}

/** A stream silent for three heartbeats is dead, regardless of the state of its socket. */
const silenceMs = 3 * defaults.sse.heartbeatMs;

/**
 * Returns the pause before a reconnection, in milliseconds: doubled with each failure up to 30 s, jittered over its upper
 * half, so that the clients of a Hub that restarts do not return together.
 *
 * @param base pause after the first failure, in milliseconds
 * @param failures failures in a row before this one, from 0
 * @example setTimeout(reconnect, backoffMs(2_000, failures))
 */
export const backoffMs = (base: number, failures: number, random = Math.random()): number =>
  exponentialBackoffMs(
    failures,
    { firstMs: base, capMs: defaults.client.reconnectCapMs, jitter: jitters.upperHalf },
    random,
  );

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}

/** Reads the messages of one connection until it ends. Throws the errors of `callHub` and of the body. */
async function* readOnce(
  address: HubAddress,
  { path, onOpen, prove }: StreamOptions,
  parser: SseParser,
  received: SseMessage[],
  lastEventId: string,
  signal: AbortSignal,
): AsyncGenerator<SseMessage> {
  const silent = new AbortController();
  const stop = AbortSignal.any([signal, silent.signal]);
  await prove?.(address, stop);
  const headers = { accept: 'text/event-stream', ...(lastEventId !== '' && { 'last-event-id': lastEventId }) };
  const response = await callHub(address, { path, headers, signal: stop });
  if (!response.header('content-type')?.startsWith('text/event-stream')) {
    response.cancel();
    throw new HubInvalidResponseError(`${path} did not answer with an event stream.`);
  }
  onOpen?.();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const watchdog = setTimeout(() => silent.abort(new Error('the event stream fell silent')), silenceMs);
  try {
    for await (const chunk of response.chunks()) {
      watchdog.refresh();
      parser.push(decoder.decode(chunk, { stream: true }));
      yield* received.splice(0);
    }
  } finally {
    clearTimeout(watchdog);
  }
}

/**
 * Reads an event stream for as long as the caller wants: when the connection breaks it is made again after a pause (the
 * server's `retry`, doubled with every failure up to 30 s, with jitter) and resumes after the last id that was read.
 * Ends when `signal` aborts, when the caller stops iterating, or when the stream ends after `isLast` was true.
 *
 * @throws HubUnavailableError when the first connection fails; HubRequestError when the Hub refuses the stream
 */
export async function* readStream(
  start: HubAddress,
  options: StreamOptions,
): AsyncGenerator<SseMessage, void, undefined> {
  const leaving = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, leaving.signal]) : leaving.signal;
  let address = start;
  let lastEventId = options.lastEventId ?? '';
  let retryMs: number = defaults.sse.retryMs;
  let failures = 0;
  let everOpen = false;
  try {
    while (!signal.aborted) {
      let ended = false;
      let reason = 'the stream was closed';
      const received: SseMessage[] = [];
      const parser = new SseParser(
        { onMessage: (message) => received.push(message), onRetry: (milliseconds) => (retryMs = milliseconds) },
        lastEventId,
      );
      const onOpen = () => {
        everOpen = true;
        options.onOpen?.();
      };
      try {
        for await (const message of readOnce(address, { ...options, onOpen }, parser, received, lastEventId, signal)) {
          failures = 0;
          lastEventId = message.lastEventId;
          if (options.isLast?.(message)) ended = true;
          yield message;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!isWorthRetrying(error, everOpen, options.relocate !== undefined)) throw error;
        reason = messageOf(error);
      }
      if (ended || signal.aborted) return;
      const delayMs = backoffMs(retryMs, failures++);
      options.onLost?.(reason, delayMs);
      await pause(delayMs, signal);
      if (!signal.aborted) address = (await options.relocate?.(signal).catch(() => null)) ?? address;
    }
  } finally {
    leaving.abort();
  }
}

/** Whether to reconnect. Refusals are final, except from a Hub that is shutting down, or of a token that a new address replaces. */
function isWorthRetrying(error: unknown, everOpen: boolean, canMove: boolean): boolean {
  if (!everOpen) return false;
  if (error instanceof HubUnavailableError) return true;
  if (error instanceof HubRequestError) return error.status >= 500 || (error.status === 401 && canMove);
  return !(error instanceof HubInvalidResponseError);
}
