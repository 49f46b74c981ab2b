import { DueIndex } from './due-index.ts';

/** Told in one go, before the event loop gets its turn. */
const atOnce = 25;
/** What could not be read or written is tried again after this time. */
const holdMs = 30_000;

interface Held {
  readonly at: number;
  readonly until: number;
}

/** What is to be told when: due times, retries, and due times whose rows could not be read. Times are those of the wall clock. */
export class Calendar {
  readonly #dues = new DueIndex();
  readonly #retries = new DueIndex();
  readonly #held = new Map<string, Held>();

  /** Nothing is to be told, ever. */
  get isEmpty(): boolean {
    return this.#dues.size === 0 && this.#retries.size === 0 && this.#held.size === 0;
  }

  dueOf(id: string): number | null {
    return this.#dues.get(id) ?? this.#held.get(id)?.at ?? null;
  }

  get nextDue(): number | null {
    return this.#dues.next();
  }

  /** Of dues and retries; null: there is none. */
  next(): number | null {
    const [due, retry] = [this.#dues.next(), this.#retries.next()];
    return due === null || retry === null ? (due ?? retry) : Math.min(due, retry);
  }

  /** @param at null: never */
  setDue(id: string, at: number | null): void {
    this.#held.delete(id);
    this.#dues.set(id, at);
  }

  /** @param at null: never */
  setRetry(id: string, at: number | null): void {
    this.#retries.set(id, at);
  }

  remove(id: string): void {
    this.setDue(id, null);
    this.setRetry(id, null);
  }

  clearDues(): void {
    this.#dues.clear();
    this.#held.clear();
  }

  /**
   * Tells what is due at `now`, a limited number at a time. What cannot be told now, because `tell` throws, is told later.
   *
   * @param tell `due` returns the next due time
   */
  handOut(
    now: number,
    tell: {
      readonly retry: (id: string) => void;
      readonly due: (id: string, at: number) => number | null;
      readonly onFault: (error: unknown) => void;
    },
  ): void {
    for (const [id, { at, until }] of this.#held) if (until <= now) this.setDue(id, at);
    for (const { id } of this.#retries.take(now, atOnce)) {
      try {
        tell.retry(id);
      } catch (error) {
        this.#retries.set(id, now + holdMs);
        tell.onFault(error);
      }
    }
    for (const { id, at } of this.#dues.take(now, atOnce)) {
      try {
        this.setDue(id, tell.due(id, at));
      } catch (error) {
        this.#held.set(id, { at, until: now + holdMs });
        tell.onFault(error);
      }
    }
  }
}
