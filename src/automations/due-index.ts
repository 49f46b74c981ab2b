interface DueEntry {
  readonly at: number;
  readonly id: string;
  /** Number that decides among entries for the same time: the first added is the first out. */
  readonly order: number;
}

const isBefore = (one: DueEntry, other: DueEntry): boolean =>
  one.at === other.at ? one.order < other.order : one.at < other.at;

/**
 * Due times in a binary heap, so that a tick costs only the due entries. An entry that was replaced or
 * removed stays in the heap until it comes to the top; the map knows whether it still counts.
 */
export class DueIndex {
  readonly #times = new Map<string, number>();
  #heap: DueEntry[] = [];
  #order = 0;

  get size(): number {
    return this.#times.size;
  }

  get(id: string): number | undefined {
    return this.#times.get(id);
  }

  /** @param at null: never */
  set(id: string, at: number | null): void {
    if (at === null) {
      this.#times.delete(id);
      return;
    }
    if (this.#times.get(id) === at) return;
    this.#times.set(id, at);
    this.#order += 1;
    this.#push({ at, id, order: this.#order });
    if (this.#heap.length > 64 && this.#heap.length > 2 * this.#times.size) this.#rebuild();
  }

  clear(): void {
    this.#times.clear();
    this.#heap = [];
  }

  /** The earliest time; null without one. */
  next(): number | null {
    this.#dropStale();
    return this.#heap[0]?.at ?? null;
  }

  /** Removes and returns the entries that are due at `now`, the earliest first, at most `limit`. */
  take(now: number, limit: number): readonly Pick<DueEntry, 'id' | 'at'>[] {
    const taken: DueEntry[] = [];
    while (taken.length < limit) {
      this.#dropStale();
      const [top] = this.#heap;
      if (!top || top.at > now) break;
      this.#pop();
      this.#times.delete(top.id);
      taken.push(top);
    }
    return taken;
  }

  #dropStale(): void {
    for (let [top] = this.#heap; top && this.#times.get(top.id) !== top.at; [top] = this.#heap) this.#pop();
  }

  #rebuild(): void {
    // An array in order is a heap.
    this.#heap = this.#heap
      .filter(({ id, at }) => this.#times.get(id) === at)
      .sort((one, other) => (isBefore(one, other) ? -1 : 1));
  }

  #push(entry: DueEntry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (!parent || isBefore(parent, entry)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const child = this.#smallerChild(index);
      const entry = heap[child];
      if (!entry || isBefore(last, entry)) break;
      heap[index] = entry;
      index = child;
    }
    heap[index] = last;
  }

  #smallerChild(index: number): number {
    const left = 2 * index + 1;
    const [one, other] = [this.#heap[left], this.#heap[left + 1]];
    return one && other && isBefore(other, one) ? left + 1 : left;
  }
}
