import type { Readable } from 'node:stream';
import type { StreamHost } from './stream.ts';

/**
 * An answer whose body another stream delivers, at the pace of its client: while the client takes nothing, the source is
 * paused. Adapters add the writing. Status and headers leave with the first bytes.
 */
export abstract class PipeWriter {
  readonly #host: Pick<StreamHost, 'onOver'>;
  readonly #body: Readable;
  #isOver = false;
  protected hasBegun = false;

  constructor(host: Pick<StreamHost, 'onOver'>, body: Readable) {
    this.#host = host;
    this.#body = body;
  }

  /** Writes at once, after the head if it is the first. False when bytes were left behind: then `writable` follows. */
  protected abstract send(chunk: Uint8Array): boolean;
  /** Ends the answer after the written bytes. */
  protected abstract finish(): void;
  /** Ends the connection in the middle of the answer. */
  protected abstract disconnect(): void;

  begin(): void {
    const body = this.#body;
    body.on('data', (chunk: Uint8Array) => {
      if (this.#isOver) return;
      const isTaken = this.send(chunk);
      this.hasBegun = true;
      if (!isTaken) body.pause();
    });
    body.once('end', () => {
      if (this.#isOver) return;
      this.#end();
      this.finish();
    });
    const fail = () => {
      if (this.#isOver) return;
      this.#end();
      this.disconnect();
    };
    body.once('error', fail);
    body.once('close', fail);
  }

  /** The connection takes bytes again. */
  writable(): void {
    if (!this.#isOver) this.#body.resume();
  }

  /** The client has gone. */
  gone(): void {
    if (this.#isOver) return;
    this.#end();
    this.#body.destroy();
  }

  #end(): void {
    this.#isOver = true;
    this.#host.onOver();
  }
}
