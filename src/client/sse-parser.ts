/** One dispatched event of a stream. `lastEventId` is the stream's, also when this event brought none of its own. */
export interface SseMessage {
  readonly event: string;
  readonly data: string;
  readonly lastEventId: string;
}

export interface SseHandlers {
  readonly onMessage: (message: SseMessage) => void;
  /** The server asks for this pause before a reconnection, in milliseconds. */
  readonly onRetry?: (milliseconds: number) => void;
}

/** A line longer than this is no event of ours: the connection is broken off instead of filling the memory. */
const maxLineCharacters = 32 * 1_048_576;

/**
 * Parses `text/event-stream` as it arrives, cut anywhere (WHATWG HTML, section 9.2.6). Lines end in CR, LF or CRLF; a leading byte
 * order mark is skipped; an event without data is not dispatched, yet its id counts.
 */
export class SseParser {
  readonly #handlers: SseHandlers;
  #rest = '';
  #atStart = true;
  #skipLineFeed = false;
  #data: string[] = [];
  #event = '';
  #lastEventId: string;

  constructor(handlers: SseHandlers, lastEventId = '') {
    this.#handlers = handlers;
    this.#lastEventId = lastEventId;
  }

  /** @throws RangeError when a line grows past all measure */
  push(chunk: string): void {
    if (chunk === '') return;
    let text = chunk;
    if (this.#atStart) {
      this.#atStart = false;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    if (this.#skipLineFeed && text !== '') {
      this.#skipLineFeed = false;
      if (text.startsWith('\n')) text = text.slice(1);
    }
    this.#lines(text);
  }

  #lines(text: string): void {
    const lineEnd = /\r\n?|\n/g;
    let from = 0;
    for (let match = lineEnd.exec(text); match; match = lineEnd.exec(text)) {
      const line = this.#rest + text.slice(from, match.index);
      this.#rest = '';
      from = lineEnd.lastIndex;
      this.#skipLineFeed = match[0] === '\r' && from === text.length;
      this.#line(line);
    }
    this.#rest += text.slice(from);
    if (this.#rest.length > maxLineCharacters) throw new RangeError('a line of the event stream is too long');
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? '' : line.slice(colon + 1);
    const value = raw.startsWith(' ') ? raw.slice(1) : raw;
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#lastEventId = value;
    else if (field === 'retry' && /^[0-9]+$/.test(value)) this.#handlers.onRetry?.(Number(value));
  }

  #dispatch(): void {
    const data = this.#data;
    const event = this.#event;
    this.#data = [];
    this.#event = '';
    if (data.length === 0) return;
    this.#handlers.onMessage({ event: event || 'message', data: data.join('\n'), lastEventId: this.#lastEventId });
  }
}
