import type { RecorderClock } from '../../src/inspect/index.ts';

/** Clock that advances by `pass` only. */
export class HandClock implements RecorderClock {
  time = 1_000;
  readonly #timers = new Map<number, { at: number; callback: () => void }>();
  #next = 1;
  now = () => this.time;
  setTimeout = (callback: () => void, milliseconds: number) => {
    this.#timers.set(this.#next, { at: this.time + milliseconds, callback });
    return this.#next++;
  };
  clearTimeout = (timer: unknown) => {
    this.#timers.delete(timer as number);
  };
  get armed() {
    return this.#timers.size;
  }
  pass(milliseconds: number) {
    this.time += milliseconds;
    for (const [id, { at, callback }] of [...this.#timers]) {
      if (at > this.time) continue;
      this.#timers.delete(id);
      callback();
    }
  }
}
