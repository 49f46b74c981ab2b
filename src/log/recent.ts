import type { LogRecord } from './logger.ts';

export interface NumberedLogRecord extends LogRecord {
  /** Counts up from 1. */
  readonly seq: number;
}

/** The last records of a logger (`logger.tap(recent.add)`), for views without a file. */
export class RecentLog {
  readonly #capacity: number;
  #records: NumberedLogRecord[] = [];
  #next = 1;

  /** @param capacity number of stored records; older ones are dropped */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  readonly add = (record: LogRecord): void => {
    this.#records.push({ seq: this.#next, ...record });
    this.#next += 1;
    // Cut rarely, so that a record costs the same whether or not the list is full.
    if (this.#records.length >= 2 * this.#capacity) this.#records = this.#records.slice(-this.#capacity);
  };

  /**
   * Records numbered above `seq`, oldest first: the first `limit` of them, or without `seq` the last `limit`.
   * `dropped` is the number after `seq` that are no longer held.
   */
  after(
    seq: number | undefined,
    limit: number,
  ): { readonly lines: readonly NumberedLogRecord[]; readonly dropped: number } {
    const held = this.#records.slice(-this.#capacity);
    if (seq === undefined) return { lines: held.slice(Math.max(0, held.length - limit)), dropped: 0 };
    const first = held[0]?.seq ?? this.#next;
    return { lines: held.filter((each) => each.seq > seq).slice(0, limit), dropped: Math.max(0, first - 1 - seq) };
  }
}
