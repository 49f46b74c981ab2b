/** Subscriber of a periodic tick. */
export interface Ticking {
  /** @param now `performance.now()` */
  tick(now: number): void;
}

/** One timer for all answers under way; it runs only while there are some. */
export class Ticker {
  readonly #everyMs: number;
  readonly #members = new Set<Ticking>();
  #timer: NodeJS.Timeout | undefined;

  /** @param shortestMs the shortest time that any member measures: the clock is fine enough for it */
  constructor(shortestMs: number) {
    this.#everyMs = Math.min(1_000, Math.max(5, shortestMs / 4));
  }

  add(member: Ticking): void {
    this.#members.add(member);
    this.#timer ??= setInterval(() => this.#tick(), this.#everyMs).unref();
  }

  delete(member: Ticking): void {
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const now = performance.now();
    for (const member of this.#members) member.tick(now);
  }
}
