import type { Logger } from '../../log/index.ts';

/** What must be ended, in the opposite order of its beginning; one that fails does not keep the others from it. */
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
        this.#logger.warn('something could not be ended in an orderly way', { what: next.what, error });
      }
    }
  }
}
