/**
 * The last `capacity` items, oldest first; what falls out is counted. Items are used again: what is read from a ring holds
 * until the next `claim`. Fresh ones would each outlive a few collections of garbage, which cost more than all the rest.
 */
export class Ring<T> {
  readonly #capacity: number;
  readonly #make: () => T;
  readonly #items: T[] = [];
  #start = 0;
  #dropped = 0;

  constructor(capacity: number, make: () => T) {
    if (!Number.isInteger(capacity) || capacity < 1) throw new RangeError('A ring holds at least one item.');
    this.#capacity = capacity;
    this.#make = make;
  }

  get size(): number {
    return this.#items.length;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** The next item, to be written over: a new one, or the oldest when the ring is full. */
  claim(): T {
    const oldest = this.#items.length < this.#capacity ? undefined : this.#items[this.#start];
    if (oldest === undefined) {
      const made = this.#make();
      this.#items.push(made);
      return made;
    }
    this.#start = this.#start + 1 === this.#capacity ? 0 : this.#start + 1;
    this.#dropped += 1;
    return oldest;
  }

  /** The newest `count` items, oldest first; all of them when there are fewer. */
  last(count = this.#items.length): T[] {
    const size = this.#items.length;
    const items: T[] = [];
    for (let index = Math.max(0, size - count); index < size; index += 1) {
      const item = this.#items[(this.#start + index) % size];
      if (item !== undefined) items.push(item);
    }
    return items;
  }
}
