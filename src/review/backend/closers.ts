import type { Logger } from '../../log/index.ts';
import { limits } from './limits.ts';

interface Closer {
  readonly what: string;
  readonly close: () => unknown;
  readonly limitMs: number;
}

/**
 * Closes parts in the reverse order of their start. A failure, or a part that takes too long, is logged, and the other parts are still
 * closed: a database that does not answer must not keep the process alive.
 */
export class Closers {
  readonly #logger: Logger;
  readonly #all: Closer[] = [];
  #closing: Promise<void> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @param limitMs - time for this part */
  add(what: string, close: () => unknown, limitMs: number = limits.closeMs): void {
    this.#all.push({ what, close, limitMs });
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    const until = performance.now() + limits.stopMs;
    for (let next = this.#all.pop(); next; next = this.#all.pop()) {
      const { what, close, limitMs } = next;
      const withinMs = Math.min(limitMs, Math.max(until - performance.now(), limits.leastCloseMs));
      try {
        const isClosed = await endsWithin(withinMs, Promise.resolve(close()));
        if (!isClosed) this.#logger.warn('could not close a part of the backend in time', { what, withinMs });
      } catch (error) {
        this.#logger.warn('could not close a part of the backend', { what, error });
      }
    }
  }
}

/** @returns whether the work ended in time @throws the error of the work */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
