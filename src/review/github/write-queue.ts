/** The writes of one installation, one after the other with a pause between: GitHub's secondary limits ask for both. */
export class WriteQueue {
  readonly #spacingMs: number;
  #tail: Promise<unknown> = Promise.resolve();
  #freeAt = 0;

  constructor(spacingMs: number) {
    this.#spacingMs = spacingMs;
  }

  run<T>(write: () => Promise<T>): Promise<T> {
    const mine = this.#tail.then(async () => {
      const pause = this.#freeAt - performance.now();
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      try {
        return await write();
      } finally {
        this.#freeAt = performance.now() + this.#spacingMs;
      }
    });
    this.#tail = mine.catch(() => {});
    return mine;
  }
}
