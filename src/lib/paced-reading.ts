import type { Readable } from 'node:stream';

/**
 * Handles the chunks of one stream in batches. After `busyMs` of work the stream is paused until the event loop has turned: other
 * work of the process has its turn, and a sender that is faster than its reader is held back.
 */
export class PacedReading {
  readonly #busyMs: number;
  /** Start of the present batch, in milliseconds; undefined: none in this turn of the event loop. */
  #since: number | undefined;
  #isResting = false;

  constructor(busyMs: number) {
    this.#busyMs = busyMs;
  }

  /** Runs `work` on one chunk of `stream`. */
  run(stream: Readable, work: () => void): void {
    const since = this.#since ?? this.#begin(stream);
    work();
    if (performance.now() - since > this.#busyMs) stream.pause();
  }

  #begin(stream: Readable): number {
    const since = performance.now();
    this.#since = since;
    setImmediate(() => {
      this.#since = undefined;
      if (stream.isPaused() && !this.#isResting) stream.resume();
    });
    return since;
  }

  /** Reads nothing of `stream` for a time. */
  rest(stream: Readable, ms: number): void {
    this.#isResting = true;
    stream.pause();
    setTimeout(() => {
      this.#isResting = false;
      stream.resume();
    }, ms).unref();
  }
}
