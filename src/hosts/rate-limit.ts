/** A host that sends too much is read more slowly: the rest waits at the sender, and the Hub has time for others. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Minimum time between two reads of the list. Events in between count as one change. */
const betweenReadsMs = 500;
/** Minimum pause after a read, as a multiple of its duration. */
const restFactor = 4;
/** Rate limit: the Hub stops reading a host that sends more until the second is over. */
const maxEventsPerSecond = 1_000;
/** A longer event counts as several. */
const eventBytes = 4_096;

/** Reads again after a change. All changes during a read cause one further read. */
export class Refresh {
  readonly #read: () => Promise<void>;
  readonly #signal: AbortSignal;
  #running: Promise<void> | null = null;
  #isDue = false;

  constructor(read: () => Promise<void>, signal: AbortSignal) {
    this.#read = read;
    this.#signal = signal;
  }

  soon(): Promise<void> {
    this.#isDue = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#signal.aborted) {
      this.#isDue = false;
      const begun = performance.now();
      await this.#read();
      const pauseMs = Math.max(betweenReadsMs, restFactor * (performance.now() - begun));
      if (!this.#signal.aborted) await sleep(pauseMs, undefined, { signal: this.#signal }).catch(() => {});
    }
  }
}

/** Limits the rate of reading. Further events wait at the sender. */
export class RateLimit {
  readonly #signal: AbortSignal;
  #second = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** @param bytes size of the event that was read */
  async next(bytes: number): Promise<void> {
    const now = performance.now();
    if (now - this.#second >= 1_000) {
      this.#second = now;
      this.#count = 0;
    }
    this.#count += Math.max(1, bytes / eventBytes);
    if (this.#count < maxEventsPerSecond) return;
    const left = this.#second + (1_000 * this.#count) / maxEventsPerSecond - now;
    await sleep(left, undefined, { signal: this.#signal }).catch(() => {});
  }
}
