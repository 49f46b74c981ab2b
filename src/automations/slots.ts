/** Limits concurrency; the others wait in line: first come, first served. Slots have ids, so that a second release is harmless. */
export class Slots {
  readonly #limit: number;
  readonly #busy = new Set<string>();
  readonly #line = new Map<string, () => void>();
  #isClosed = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get busy(): number {
    return this.#busy.size;
  }

  /** Calls `grant` when a slot is free, perhaps at once. */
  ask(id: string, grant: () => void): void {
    this.#line.set(id, grant);
    this.#serve();
  }

  /** Gives the slot back, or the place in line. */
  release(id: string): void {
    this.#line.delete(id);
    if (this.#busy.delete(id)) this.#serve();
  }

  /** Grants no further slot. */
  close(): void {
    this.#isClosed = true;
    this.#line.clear();
  }

  #serve(): void {
    for (const [id, grant] of this.#line) {
      if (this.#isClosed || this.#busy.size >= this.#limit) return;
      this.#line.delete(id);
      this.#busy.add(id);
      grant();
    }
  }
}
