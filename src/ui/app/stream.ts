import { createParser } from 'eventsource-parser';
import { type Backoff, exponentialBackoffMs, jitters, messageOf } from '../../lib/browser.ts';
import { ApiError, refusal } from './api.ts';

/** One record of a server-sent event stream. */
export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | {
      readonly state: 'reconnecting';
      readonly attempt: number;
      readonly error: string;
      /** Time of the next attempt, in milliseconds since the epoch. */
      readonly retryAt: number;
      /** Time of the last message from the server, which is the age of the shown data; null: none was received. */
      readonly since: number | null;
    }
  | { readonly state: 'refused' }
  /** This server has no such stream. */
  | { readonly state: 'absent' };

export interface StreamOptions {
  readonly url: string;
  /** Resolves when the server has proved itself; asked before each connection. Rejects with `ApiError`. */
  readonly token: () => Promise<string | null>;
  readonly signal: AbortSignal;
  /** Resumes after this event instead of starting at the beginning. */
  readonly lastEventId?: string | undefined;
  /** Called with all events that one network read completed; empty for a heartbeat. */
  readonly onEvents: (events: readonly StreamEvent[]) => void;
  /** Called for each connection; `resumed` is true if it continues after an id, false if the server sends everything again. */
  readonly onOpen: (resumed: boolean) => void;
  readonly onConnection: (connection: Connection) => void;
}

/** Silence after which a connection counts as dead; the server sends a heartbeat every 15 s. */
const silenceMs = 40_000;
/** Pauses before a reconnection; spread, so that many tabs do not reconnect together. */
const reconnection: Backoff = { firstMs: 300, capMs: 5_000, jitter: jitters.quarterAround };

/** States after a final answer, by HTTP status: there is no further attempt. */
const verdicts: Readonly<Record<number, Connection>> = {
  401: { state: 'refused' },
  403: { state: 'refused' },
  404: { state: 'absent' },
};

/**
 * Reads server-sent events with `fetch`, because a browser's EventSource cannot send an Authorization header.
 * Reconnects for ever, after growing pauses, resuming behind the last id; ends when `signal` aborts, or when the server
 * refuses the token or has no such stream.
 */
export async function readStream(options: StreamOptions): Promise<void> {
  let { lastEventId } = options;
  let attempt = 0;
  let heardAt: number | null = null;
  options.onConnection({ state: 'connecting' });
  while (!options.signal.aborted) {
    try {
      for await (const events of connect(options, lastEventId)) {
        attempt = 0;
        heardAt = Date.now();
        lastEventId = events.findLast(({ id }) => id !== '')?.id ?? lastEventId;
        options.onEvents(events);
      }
      throw new Error('The stream ended.');
    } catch (error) {
      if (options.signal.aborted) return;
      if (error instanceof StreamFailure) {
        options.onConnection(error.connection);
        return;
      }
      attempt += 1;
      const wait = exponentialBackoffMs(attempt - 1, reconnection, Math.random());
      const message = messageOf(error);
      options.onConnection({
        state: 'reconnecting',
        attempt,
        error: message,
        retryAt: Date.now() + wait,
        since: heardAt,
      });
      await pause(wait, options.signal);
    }
  }
}

class StreamFailure extends Error {
  readonly connection: Connection;

  constructor(connection: Connection) {
    super(connection.state);
    this.connection = connection;
  }
}

async function* connect(options: StreamOptions, lastEventId: string | undefined): AsyncGenerator<StreamEvent[]> {
  const abort = new AbortController();
  const end = () => abort.abort();
  options.signal.addEventListener('abort', end, { once: true });
  let watchdog = setTimeout(end, silenceMs);
  try {
    const token = await options.token().catch((error: unknown) => {
      const verdict = error instanceof ApiError ? verdicts[error.status] : undefined;
      throw verdict ? new StreamFailure(verdict) : error;
    });
    const response = await fetch(options.url, {
      headers: {
        accept: 'text/event-stream',
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
      cache: 'no-store',
      signal: abort.signal,
    });
    const verdict = verdicts[response.status];
    if (verdict) throw new StreamFailure(verdict);
    if (!response.ok) throw await refusal(response);
    if (!response.body) throw new Error(`The server answered ${response.status} without a stream.`);
    options.onOpen(lastEventId !== undefined);
    options.onConnection({ state: 'live' });
    const parser = new SseParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(end, silenceMs);
      yield parser.push(value);
    }
  } finally {
    clearTimeout(watchdog);
    options.signal.removeEventListener('abort', end);
    abort.abort();
  }
}

/** Characters of an unfinished event or line; a server that sends more must not fill the memory of the tab. */
const maxBufferedCharacters = 32 * 1_048_576;

/** Parses the event stream format of the HTML standard, fed with text in any pieces. */
export class SseParser {
  #complete: StreamEvent[] = [];
  readonly #parser = createParser({
    maxBufferSize: maxBufferedCharacters,
    onEvent: ({ id = '', event = 'message', data }) => {
      this.#complete.push({ id, event, data });
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw new RangeError('An event of the stream is too long.');
    },
  });

  /**
   * Returns the events that `text` completes.
   *
   * @throws RangeError when an event grows beyond 32 Mi characters
   */
  push(text: string): StreamEvent[] {
    this.#parser.feed(text);
    const events = this.#complete;
    this.#complete = [];
    return events;
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', end, { once: true });
  });
}
