import { DueIndex } from './due-index.ts';

/** Reported at once, before the event loop gets its turn. */
const atOnce = 25;
/** Pause before a failed read or write is retried. */
const holdMs = 30_000;

interface PostponedDue {
  readonly at: number;
  readonly until: number;
}

/** Pending reports: due times, retries, and due times whose rows could not be read. Times are those of the wall clock. */
export class Calendar {
  readonly #dues = new DueIndex();
  readonly #retries = new DueIndex();
  readonly #held = new Map<string, PostponedDue>();

  /** Whether no report is pending. */
  get isEmpty(): boolean {
    return this.#dues.size === 0 && this.#retries.size === 0 && this.#held.size === 0;
  }

  dueOf(id: string): number | null {
    return this.#dues.get(id) ?? this.#held.get(id)?.at ?? null;
  }

  get nextDue(): number | null {
    return this.#dues.next();
  }

  /** Earliest of dues and retries; null without one. */
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
   * Reports the entries due at `now`, a limited number at a time. Those for which `report` throws are reported later.
   *
   * @param report `due` returns the next due time
   */
  handOut(
    now: number,
    report: {
      readonly retry: (id: string) => void;
      readonly due: (id: string, at: number) => number | null;
      readonly onFault: (error: unknown) => void;
    },
  ): void {
    for (const [id, { at, until }] of this.#held) if (until <= now) this.setDue(id, at);
    for (const { id } of this.#retries.take(now, atOnce)) {
      try {
        report.retry(id);
      } catch (error) {
        this.#retries.set(id, now + holdMs);
        report.onFault(error);
      }
    }
    for (const { id, at } of this.#dues.take(now, atOnce)) {
      try {
        this.setDue(id, report.due(id, at));
      } catch (error) {
        this.#held.set(id, { at, until: now + holdMs });
        report.onFault(error);
      }
    }
  }
}
