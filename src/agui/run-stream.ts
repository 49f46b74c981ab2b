import type { SseSource } from '../http/index.ts';
import { type AguiEvent, frameOf } from './events.ts';

type Hear = Parameters<SseSource['subscribe']>[0];

/** The event stream of one run, for its one reader: events of one turn of the event loop are one write. */
export class RunStream implements SseSource {
  readonly #onGone: () => void;
  #waiting: Uint8Array[] = [];
  #hear: Hear | undefined;
  #end: (() => void) | undefined;
  #isFlushing = false;
  #state: 'open' | 'ended' | 'gone' = 'open';

  /** @param onGone called once when the reader has left before the end */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  send(event: AguiEvent): void {
    if (this.#state !== 'open') return;
    this.#waiting.push(frameOf(event));
    if (!this.#hear || this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => this.#flush());
  }

  end(): void {
    if (this.#state !== 'open') return;
    this.#flush();
    this.#state = 'ended';
    this.#end?.();
  }

  /** The reader has gone, or never came. */
  leave(): void {
    if (this.#state !== 'open') return;
    this.#state = 'gone';
    this.#waiting = [];
    this.#onGone();
  }

  replay(): readonly Uint8Array[] {
    return this.#waiting.splice(0);
  }

  subscribe(listener: Hear, onEnd: () => void): () => void {
    this.#hear = listener;
    this.#end = onEnd;
    if (this.#state === 'ended') onEnd();
    return () => this.leave();
  }

  #flush(): void {
    this.#isFlushing = false;
    if (!this.#hear || this.#waiting.length === 0) return;
    this.#hear(Buffer.concat(this.#waiting.splice(0)));
  }
}
