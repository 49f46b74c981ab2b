export interface RingOptions<T> {
  /** Items held at most. */
  readonly maxItems: number;
  /** Bytes held at most; with `bytesOf`. Default: no bound. An item larger than this is dropped at once. */
  readonly maxBytes?: number;
  /** Size of an item; must not change while the ring holds it. Default: 0. */
  readonly bytesOf?: (item: T) => number;
  /** Called with each item that `push` drops, oldest first, after it has left the ring. */
  readonly onDrop?: (item: T) => void;
}

/** Holds the last items that were pushed, bounded by count and bytes. The oldest are dropped first, and counted. */
export class Ring<T> {
  readonly #maxItems: number;
  readonly #maxBytes: number;
  readonly #bytesOf: (item: T) => number;
  readonly #onDrop: ((item: T) => void) | undefined;
  /** Grows up to `maxItems` as items arrive: thousands of rings stay almost empty. */
  #slots: (T | undefined)[] = [];
  #start = 0;
  #size = 0;
  #bytes = 0;
  #dropped = 0;

  /** @throws RangeError when `maxItems` is not a positive integer */
  constructor({ maxItems, maxBytes, bytesOf, onDrop }: RingOptions<T>) {
    if (!Number.isSafeInteger(maxItems) || maxItems < 1) throw new RangeError('maxItems must be a positive integer');
    this.#maxItems = maxItems;
    this.#maxBytes = maxBytes ?? Number.POSITIVE_INFINITY;
    this.#bytesOf = bytesOf ?? (() => 0);
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Items that were dropped or taken since the ring was made; `clear` does not count. */
  get dropped(): number {
    return this.#dropped;
  }

  get oldest(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[this.#start];
  }

  push(item: T): void {
    if (this.#size === this.#maxItems) this.#drop();
    const index = this.#indexOf(this.#size);
    if (index === this.#slots.length) this.#slots.push(item);
    else this.#slots[index] = item;
    this.#size += 1;
    this.#bytes += this.#bytesOf(item);
    while (this.#bytes > this.#maxBytes && this.#size > 0) this.#drop();
  }

  /** Removes the oldest item of a full ring and returns it, so that its memory can be used for the next item. */
  takeIfFull(): T | undefined {
    return this.#size === this.#maxItems ? this.#removeOldest() : undefined;
  }

  /** Returns the newest `count` items, oldest first; all of them when fewer are held. */
  last(count = this.#size): T[] {
    const items: T[] = [];
    for (let position = Math.max(0, this.#size - count); position < this.#size; position += 1) {
      items.push(this.#slots[this.#indexOf(position)] as T);
    }
    return items;
  }

  /** Removes all items without a call of `onDrop`. */
  clear(): void {
    this.#slots = [];
    this.#start = 0;
    this.#size = 0;
    this.#bytes = 0;
  }

  #indexOf(position: number): number {
    const index = this.#start + position;
    return index < this.#maxItems ? index : index - this.#maxItems;
  }

  #drop(): void {
    const item = this.#removeOldest();
    this.#onDrop?.(item);
  }

  /** Only for a ring that holds an item. */
  #removeOldest(): T {
    const item = this.#slots[this.#start] as T;
    this.#slots[this.#start] = undefined;
    this.#start = this.#indexOf(1);
    this.#size -= 1;
    this.#bytes -= this.#bytesOf(item);
    this.#dropped += 1;
    return item;
  }
}
