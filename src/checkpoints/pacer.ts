import { setImmediate } from 'node:timers/promises';

/** Longest piece of work without a pause. */
const sliceMs = 2;

/** Divides work that blocks into slices: between them the event loop serves others. */
export class Pacer {
  #since = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#since > sliceMs;
  }

  async pause(): Promise<void> {
    await setImmediate();
    this.#since = performance.now();
  }
}
