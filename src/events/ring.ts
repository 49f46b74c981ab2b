/** One event as it is kept: its number, itself, and the bytes every reader gets. */
export interface Entry<E> {
  readonly sequence: number;
  readonly event: E;
  readonly frame: Uint8Array;
}

/** The last entries, bounded by count and by bytes of their frames. Sequence numbers are consecutive, from 1. */
export class Ring<E> {
  readonly #slots: (Entry<E> | undefined)[];
  readonly #maxBytes: number;
  #bytes = 0;
  /** Sequence number of the oldest entry held; one past `last` when none is. */
  first = 1;
  last = 0;

  constructor(maxEvents: number, maxBytes: number) {
    if (!Number.isSafeInteger(maxEvents) || maxEvents < 1) throw new RangeError('maxEvents must be a positive integer');
    this.#slots = new Array<Entry<E> | undefined>(maxEvents).fill(undefined);
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(entry: Entry<E>): void {
    if (this.last - this.first + 1 === this.#slots.length) this.#evict();
    this.#slots[entry.sequence % this.#slots.length] = entry;
    this.last = entry.sequence;
    this.#bytes += entry.frame.byteLength;
    // An event larger than the whole bound is not kept either: readers that are connected have it, the others see a gap.
    while (this.#bytes > this.#maxBytes) this.#evict();
  }

  #evict(): void {
    const slot = this.first % this.#slots.length;
    this.#bytes -= this.#slots[slot]?.frame.byteLength ?? 0;
    this.#slots[slot] = undefined;
    this.first += 1;
  }

  /** Entries numbered above `sequence`, oldest first. */
  after(sequence: number): Entry<E>[] {
    const entries: Entry<E>[] = [];
    for (let next = Math.max(sequence + 1, this.first); next <= this.last; next += 1) {
      const entry = this.#slots[next % this.#slots.length];
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }
}
