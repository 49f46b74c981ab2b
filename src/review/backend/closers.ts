import type { Logger } from '../../log/index.ts';

/** Closes parts in the reverse order of their start. A failure is logged, and the other parts are still closed. */
export class Closers {
  readonly #logger: Logger;
  readonly #all: { readonly what: string; readonly close: () => unknown }[] = [];
  #closing: Promise<void> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(what: string, close: () => unknown): void {
    this.#all.push({ what, close });
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    for (let next = this.#all.pop(); next; next = this.#all.pop()) {
      try {
        await next.close();
      } catch (error) {
        this.#logger.warn('could not close a part of the backend', { what: next.what, error });
      }
    }
  }
}
