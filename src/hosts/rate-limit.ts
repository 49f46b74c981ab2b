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
  #isReading = false;
  readonly #waiting: (() => void)[] = [];

  constructor(read: () => Promise<void>, signal: AbortSignal) {
    this.#read = read;
    this.#signal = signal;
  }

  soon(): Promise<void> {
    this.#isDue = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      this.#release();
    });
    return this.#running;
  }

  /** Resolves when a read after the last call of `soon` has ended, or reading ends; undefined without such a call. */
  current(): Promise<void> | undefined {
    if (this.#signal.aborted || !(this.#isDue || this.#isReading)) return undefined;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#signal.aborted) {
      this.#isDue = false;
      this.#isReading = true;
      const begun = performance.now();
      const earlier = this.#waiting.length;
      try {
        await this.#read();
      } finally {
        this.#isReading = false;
        // A call of `soon` during this read concerns the next one.
        this.#release(this.#isDue ? earlier : undefined);
      }
      const pauseMs = Math.max(betweenReadsMs, restFactor * (performance.now() - begun));
      if (!this.#signal.aborted) await sleep(pauseMs, undefined, { signal: this.#signal }).catch(() => {});
    }
  }

  #release(count = this.#waiting.length): void {
    for (const resolve of this.#waiting.splice(0, count)) resolve();
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
