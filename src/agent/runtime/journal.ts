import { defaults } from '../../protocol/index.ts';
import { StorageError, type ThreadStore } from '../thread-store.ts';

/** Owner of writes, which is notified when they fail. */
export interface JournalOwner {
  onStorageFault(error: unknown): void;
}

interface Entry {
  readonly owner: JournalOwner;
  readonly write: (() => void) | undefined;
  readonly publish: (() => void) | undefined;
}

/** Takes the writes and events of a turn. */
export interface Journal {
  /** True when pieces of an item are written before it is complete, so that a crash loses none of them. */
  readonly keepsPieces: boolean;
  /** Runs `write`, then `publish`, in the order of the calls; `publish` at once when no write is pending. */
  add(owner: JournalOwner, write: (() => void) | undefined, publish: (() => void) | undefined): void;
  /** Writes and publishes everything pending, before a snapshot is given to a client that gets the events after it. */
  flush(): void;
}

/** Journal of ephemeral threads: writes and publishes at once. */
export class VolatileJournal implements Journal {
  readonly keepsPieces = false;
  readonly #onBug: (error: unknown) => void;

  constructor(onBug: (error: unknown) => void) {
    this.#onBug = onBug;
  }

  add(_owner: JournalOwner, write: (() => void) | undefined, publish: (() => void) | undefined): void {
    try {
      write?.();
      publish?.();
    } catch (error) {
      this.#onBug(error);
    }
  }

  flush(): void {
    // Nothing is pending.
  }
}

/** Limits of the wait for another program that holds the database, in milliseconds. */
export interface JournalPatience {
  readonly retryMs: number;
  readonly lockedMs: number;
}

const usualPatience: JournalPatience = { retryMs: defaults.agent.storeRetryMs, lockedMs: defaults.agent.storeLockedMs };

/**
 * Journal of stored threads: every event is on disk before it is published, so that a kill loses no published state. The
 * writes of one turn of the event loop, from all threads, share one commit. While another program holds the database, writes and events wait, for a
 * minute at most. When a commit fails, nothing of it is published, and every owner is notified once.
 */
export class DurableJournal implements Journal {
  readonly keepsPieces = true;
  readonly #store: ThreadStore;
  readonly #onBug: (error: unknown) => void;
  #entries: Entry[] = [];
  #scheduled: NodeJS.Immediate | undefined;
  readonly #patience: JournalPatience;
  /** The next try, and when the waiting began. */
  #waiting: { readonly timer: NodeJS.Timeout; readonly since: number } | undefined;

  constructor(store: ThreadStore, onBug: (error: unknown) => void, patience: JournalPatience = usualPatience) {
    this.#store = store;
    this.#onBug = onBug;
    this.#patience = patience;
  }

  add(owner: JournalOwner, write: (() => void) | undefined, publish: (() => void) | undefined): void {
    if (!write && this.#entries.length === 0) {
      publish?.();
      return;
    }
    this.#entries.push({ owner, write, publish });
    if (!this.#waiting) this.#scheduled ??= setImmediate(() => this.flush());
  }

  flush(): void {
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    const { since } = this.#waiting ?? { since: performance.now() };
    clearTimeout(this.#waiting?.timer);
    this.#waiting = undefined;
    while (this.#entries.length > 0) {
      const entries = this.#entries;
      this.#entries = [];
      if (!this.#commit(entries, since)) return;
    }
  }

  /** @returns false: another program holds the database, and a timer will try again */
  #commit(entries: Entry[], since: number): boolean {
    try {
      this.#store.transaction(() => {
        for (const { write } of entries) write?.();
      });
    } catch (error) {
      const { retryMs, lockedMs } = this.#patience;
      if (error instanceof StorageError && error.code === 'busy' && performance.now() - since < lockedMs) {
        this.#entries = [...entries, ...this.#entries];
        this.#waiting = { timer: setTimeout(() => this.flush(), retryMs), since };
        return false;
      }
      const owners = new Set(entries.map(({ owner }) => owner));
      for (const owner of owners) this.#safely(() => owner.onStorageFault(error));
      return true;
    }
    for (const { publish } of entries) if (publish) this.#safely(publish);
    return true;
  }

  /** Runs `work`; an error is logged and stops no other entry. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onBug(error);
    }
  }
}
