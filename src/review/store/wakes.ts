import { limits } from './limits.ts';

export type Wake = 'events' | 'jobs' | 'runs';
type Listener = (what: Wake) => void;

/** Notifies listeners that there may be something to do. These are hints: nothing depends on a lost one. */
export class Wakes {
  readonly #listeners = new Set<Listener>();
  readonly #clock: NodeJS.Timeout;
  readonly #sendToOthers: ((what: Wake) => void) | undefined;

  /** @param sendToOthers - sends a hint to other processes */
  constructor(sendToOthers?: (what: Wake) => void) {
    this.#sendToOthers = sendToOthers;
    this.#clock = setInterval(() => this.notifyAllHere(), limits.wakeMs).unref();
  }

  /** Notifies this process and the others after a write of this process. */
  notify(what: Wake): void {
    this.notifyHere(what);
    this.#sendToOthers?.(what);
  }

  /** Notifies the listeners of this process. */
  notifyHere(what: Wake): void {
    for (const listener of this.#listeners) listener(what);
  }

  /** Notifies the listeners of this process of every kind, because hints may have been missed. */
  notifyAllHere(): void {
    for (const what of ['runs', 'jobs', 'events'] as const) this.notifyHere(what);
  }

  on(listener: Listener): () => void {
    // A wrapper, so that the same function can be added twice.
    const own: Listener = (what) => listener(what);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  close(): void {
    clearInterval(this.#clock);
    this.#listeners.clear();
  }
}
