/** One record of a server-sent event stream. */
export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | { readonly state: 'reconnecting'; readonly attempt: number; readonly error: string }
  | { readonly state: 'refused' };

export interface StreamOptions {
  readonly url: string;
  readonly token: string;
  readonly signal: AbortSignal;
  /** Everything that one read from the network completed; `isFirst` when it is the first since a new connection. */
  readonly onEvents: (events: readonly StreamEvent[]) => void;
  /** A connection was made; `resumed` when it continues after an id, false when everything is told anew. */
  readonly onOpen: (resumed: boolean) => void;
  readonly onConnection: (connection: Connection) => void;
}

/** Silence (the server sends a heartbeat every 15 s) after which a connection is taken for dead. */
const silenceMs = 40_000;
const firstPauseMs = 300;
const longestPauseMs = 5_000;

/**
 * Reads server-sent events with `fetch`, because a browser's EventSource cannot send an Authorization header.
 * Reconnects for ever, after growing pauses, resuming behind the last id; ends when `signal` aborts or on 401.
 */
export async function readStream(options: StreamOptions): Promise<void> {
  let lastEventId: string | undefined;
  let attempt = 0;
  options.onConnection({ state: 'connecting' });
  while (!options.signal.aborted) {
    try {
      for await (const events of connect(options, lastEventId)) {
        attempt = 0;
        lastEventId = events.at(-1)?.id || lastEventId;
        if (events.length > 0) options.onEvents(events);
      }
      throw new Error('The stream ended.');
    } catch (error) {
      if (options.signal.aborted) return;
      if (error instanceof Refused) {
        options.onConnection({ state: 'refused' });
        return;
      }
      attempt += 1;
      const message = error instanceof Error ? error.message : String(error);
      options.onConnection({ state: 'reconnecting', attempt, error: message });
      await pause(
        Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(attempt - 1, 5)) * (0.75 + Math.random() / 2),
        options.signal,
      );
    }
  }
}

class Refused extends Error {}

async function* connect(options: StreamOptions, lastEventId: string | undefined): AsyncGenerator<StreamEvent[]> {
  const abort = new AbortController();
  const end = () => abort.abort();
  options.signal.addEventListener('abort', end, { once: true });
  let watchdog = setTimeout(end, silenceMs);
  try {
    const response = await fetch(options.url, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${options.token}`,
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
      cache: 'no-store',
      signal: abort.signal,
    });
    if (response.status === 401 || response.status === 403) throw new Refused();
    if (!response.ok || !response.body) throw new Error(`The Hub answered ${response.status}.`);
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

/** Parses the event stream format of the HTML standard, fed with text in any pieces. */
export class SseParser {
  #rest = '';

  /** Events that `text` completes. */
  push(text: string): StreamEvent[] {
    const blocks = (this.#rest + text).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap(parseBlock);
  }
}

function parseBlock(block: string): StreamEvent[] {
  let id = '';
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') id = value;
    else if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
  return data.length > 0 ? [{ id, event, data: data.join('\n') }] : [];
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
