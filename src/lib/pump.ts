/**
 * Runs one piece of work at a time. Requests that arrive during a run are answered together by one more run after it, so
 * the last run always began after the last request.
 */
export class Pump {
  readonly #work: () => Promise<void>;
  #series: Promise<void> = Promise.resolve();
  #isRunning = false;
  #isRequested = false;

  /** @param work reads the due items when it runs. When it rejects, requests that arrived during that run are dropped. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /**
   * Begins a run at once, or asks for one more after the run under way.
   *
   * @returns resolves when no run is left; rejects with the error of `work`. Handle the error here or in `work`.
   */
  request(): Promise<void> {
    this.#isRequested = true;
    if (!this.#isRunning) {
      this.#isRunning = true;
      this.#series = this.#run();
    }
    return this.#series;
  }

  /** Resolves when the run under way and those requested by then have ended, whether they failed or not. */
  async idle(): Promise<void> {
    await this.#series.catch(() => {});
  }

  async #run(): Promise<void> {
    try {
      while (this.#isRequested) {
        this.#isRequested = false;
        await this.#work();
      }
    } finally {
      // In the same turn as the last check: a request between the two would be lost.
      this.#isRunning = false;
      this.#isRequested = false;
    }
  }
}
