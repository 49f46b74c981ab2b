import { createParser, type EventSourceMessage, type EventSourceParser, type ParseError } from 'eventsource-parser';

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

/** Characters of an unfinished event or line; a server that sends more must not fill the memory. */
const maxBufferedCharacters = 32 * 1_048_576;

/**
 * Parses `text/event-stream` as it arrives, cut anywhere (WHATWG HTML, section 9.2.6). Lines end in CR, LF or CRLF; a leading
 * byte order mark is skipped; an event without data is not dispatched, but its id counts.
 *
 * @example
 * const parser = new SseParser({ onMessage: ({ event, data }) => console.log(event, data) });
 * parser.push('event: ready\ndata: {}\n\n');
 */
export class SseParser {
  readonly #parser: EventSourceParser;

  /** @param lastEventId id with which the stream was resumed, if any */
  constructor({ onMessage, onRetry }: SseHandlers, lastEventId = '') {
    let currentId = lastEventId;
    const config = {
      maxBufferSize: maxBufferedCharacters,
      onId: (id: string) => {
        currentId = id;
      },
      onEvent: ({ event = 'message', data }: EventSourceMessage) => onMessage({ event, data, lastEventId: currentId }),
      onRetry,
      onError: ({ type }: ParseError) => {
        if (type === 'max-buffer-size-exceeded') throw new RangeError('an event of the stream is too long');
      },
    };
    this.#parser = createParser(config);
  }

  /** @throws RangeError when an event grows beyond 32 Mi characters; the parser cannot be used afterwards */
  push(chunk: string): void {
    this.#parser.feed(chunk);
  }
}
