import type { WaitClock } from '../../../src/agent/runtime/clock.ts';

/** Clock of waits that moves only when its test moves it. */
export class HandWaitClock implements WaitClock {
  #now: number;
  #passed = 0;
  /** Due times of the timers, by the function that ends each. */
  readonly #timers = new Map<() => void, number>();
  /** Shortest timer so far, in milliseconds. */
  shortest = Number.POSITIVE_INFINITY;
  #armed = Promise.withResolvers<void>();

  constructor(now: number) {
    this.#now = now;
  }

  readonly now = (): number => this.#now;
  readonly passed = (): number => this.#passed;
  readonly sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const stop = () => {
        this.#timers.delete(wake);
        reject(signal.reason);
      };
      const wake = () => {
        this.#timers.delete(wake);
        signal.removeEventListener('abort', stop);
        resolve();
      };
      signal.addEventListener('abort', stop, { once: true });
      this.shortest = Math.min(this.shortest, ms);
      this.#timers.set(wake, this.#passed + ms);
      this.#armed.resolve();
    });

  get timers(): number {
    return this.#timers.size;
  }

  /** Resolves when a timer runs. */
  async armed(): Promise<void> {
    if (this.#timers.size > 0) return;
    this.#armed = Promise.withResolvers();
    await this.#armed.promise;
  }

  /** Lets time pass; timers end at their time. */
  async run(ms: number): Promise<void> {
    const end = this.#passed + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(([, due]) => due <= end).sort(([, one], [, other]) => one - other);
      if (!next) break;
      const [wake, due] = next;
      this.#move(due - this.#passed);
      wake();
      await new Promise(setImmediate);
    }
    this.#move(end - this.#passed);
  }

  /** Moves the wall clock alone: the machine slept, or its clock was set. */
  set(ms: number): void {
    this.#now += ms;
  }

  #move(ms: number): void {
    this.#passed += ms;
    this.#now += ms;
  }
}
