import { limits } from './limits.ts';

export type Wake = 'events' | 'jobs' | 'runs';
type Listener = (what: Wake) => void;

/** Tells those who wait that there may be something to do. Only hints: nothing depends on one that is lost. */
export class Wakes {
  readonly #listeners = new Set<Listener>();
  readonly #clock: NodeJS.Timeout;
  readonly #tellOthers: ((what: Wake) => void) | undefined;

  /** @param tellOthers - hands a hint to other processes */
  constructor(tellOthers?: (what: Wake) => void) {
    this.#tellOthers = tellOthers;
    this.#clock = setInterval(() => this.heardAll(), limits.wakeMs).unref();
  }

  /** Something was written by this process. */
  tell(what: Wake): void {
    this.heard(what);
    this.#tellOthers?.(what);
  }

  /** Something may have been written, by whomever. */
  heard(what: Wake): void {
    for (const listener of this.#listeners) listener(what);
  }

  /** Nobody knows what was missed. */
  heardAll(): void {
    for (const what of ['runs', 'jobs', 'events'] as const) this.heard(what);
  }

  on(listener: Listener): () => void {
    // The same function may listen twice.
    const own: Listener = (what) => listener(what);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  close(): void {
    clearInterval(this.#clock);
    this.#listeners.clear();
  }
}
