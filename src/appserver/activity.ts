/** Time since the last use of this server, for the idle stop. Probes do not count. */
export class Activity {
  readonly #isBusy: () => boolean;
  #lastAt = performance.now();

  /** @param isBusy whether something runs now that was asked for earlier */
  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy;
  }

  readonly note = (): void => {
    this.#lastAt = performance.now();
  };

  /** Milliseconds since the last use, also while a turn runs. */
  get sinceUseMs(): number {
    return performance.now() - this.#lastAt;
  }

  /** Milliseconds since the last use; 0 while something runs. */
  get idleMs(): number {
    return this.#isBusy() ? 0 : performance.now() - this.#lastAt;
  }
}
