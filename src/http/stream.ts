import type { ReplyStream } from './types.ts';

/** How long a client that takes no bytes may keep an answer open that is finished on our side. */
const stalledEndMs = 30_000;

/** Written where a connection needs a write and there is nothing to say: bodies of this kind allow for empty lines. */
const filler = '\n';

/** Streams written to in this turn of the event loop: each is flushed once, when the turn ends. */
export class Flusher {
  #dirty: StreamWriter[] = [];

  add(writer: StreamWriter): void {
    if (this.#dirty.push(writer) === 1) setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const writer of dirty) writer.flush();
  };
}

/** Interface of a writer to its server. */
export interface StreamHost {
  readonly flusher: Flusher;
  /** Unsent characters past which a client is disconnected. */
  readonly bufferLimit: number;
  /** Called once, when nothing will be written any more. */
  readonly onOver: () => void;
}

/**
 * The body of one answer while it is being written: joins the pieces of one turn, waits while the connection takes
 * nothing, and bounds the waiting bytes. Adapters add the writing.
 */
export abstract class StreamWriter implements ReplyStream {
  readonly #host: StreamHost;
  #text = '';
  #isScheduled = false;
  #isBlocked = false;
  #isEnding = false;
  #isOver = false;
  #stalled: NodeJS.Timeout | undefined;

  constructor(host: StreamHost) {
    this.#host = host;
  }

  /** Writes at once. False when bytes were left behind: then `writable` follows when there is room again. */
  protected abstract send(text: string): boolean;
  /** Writes `text` and ends the answer. */
  protected abstract finish(text: string): void;
  /** Ends the connection in the middle of the answer. */
  protected abstract disconnect(): void;

  write(text: string): void {
    if (this.#isOver || this.#isEnding) return;
    this.#text += text;
    if (!this.#isBlocked) this.#schedule();
    else if (this.#text.length > this.#host.bufferLimit) this.cut();
  }

  end(): void {
    if (this.#isOver || this.#isEnding) return;
    this.#isEnding = true;
    if (this.#isBlocked) this.#stalled = setTimeout(() => this.cut(), stalledEndMs).unref();
    else this.#schedule();
  }

  cut(): void {
    if (this.#isOver) return;
    this.gone();
    this.disconnect();
  }

  /** Data written while the answer was opened leaves with its headers; an answer must not begin empty. */
  begin(): void {
    if (this.#text === '' && !this.#isEnding) this.#text = filler;
    this.flush();
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#isOver || this.#isBlocked) return;
    const text = this.#text;
    this.#text = '';
    if (this.#isEnding) {
      this.gone();
      this.finish(text);
    } else if (text !== '') this.#isBlocked = !this.send(text);
  }

  /** The connection takes bytes again. uWebSockets.js keeps the tail of its own buffer until the next write. */
  writable(): void {
    this.#isBlocked = false;
    if (this.#text === '' && !this.#isEnding) this.#text = filler;
    this.flush();
  }

  /** The reader has gone. */
  gone(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#text = '';
    clearTimeout(this.#stalled);
    this.#host.onOver();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#host.flusher.add(this);
  }
}
