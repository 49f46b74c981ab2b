import type { HttpResponse } from 'uWebSockets.js';
import type { PipeReply } from './exchange.ts';
import { PipeWriter } from './pipe.ts';
import type { StreamHost } from './stream.ts';

export interface PipeSink {
  readonly res: HttpResponse;
  /** Writes status and headers. */
  readonly head: () => void;
}

const newline = 0x0a;
const comment = ':\n';

export class UwsPipe extends PipeWriter {
  readonly #res: HttpResponse;
  readonly #head: PipeSink['head'];
  readonly #isEvents: boolean;
  /** The last byte that was written. */
  #last = -1;

  constructor(
    host: Pick<StreamHost, 'onOver'>,
    { headers, body }: Pick<PipeReply, 'headers' | 'body'>,
    sink: PipeSink,
  ) {
    super(host, body);
    this.#res = sink.res;
    this.#head = sink.head;
    this.#isEvents = headers.some(([name, value]) => name === 'content-type' && value.startsWith('text/event-stream'));
  }

  protected send(chunk: Uint8Array): boolean {
    let isTaken = true;
    this.#res.cork(() => {
      if (!this.hasBegun) this.#head();
      isTaken = this.#res.write(chunk);
    });
    this.#last = chunk.at(-1) ?? this.#last;
    return isTaken;
  }

  protected finish(): void {
    this.#res.cork(() => {
      if (!this.hasBegun) this.#head();
      this.#res.end();
    });
  }

  protected disconnect(): void {
    this.#res.close();
  }

  /**
   * uWebSockets.js keeps the tail of its own buffer until the next write, and an event stream may be silent for long. A comment
   * at the beginning of a line changes nothing in it.
   */
  override writable(): void {
    if (this.#isEvents && this.#last === newline) this.#res.cork(() => this.#res.write(comment));
    super.writable();
  }
}
