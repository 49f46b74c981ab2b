import type { ThreadStore } from '../thread-store.ts';

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

/**
 * Journal of stored threads: every event is on disk before it is published, so that a kill loses no published state. The
 * writes of one turn of the event loop, from all threads, share one commit. When a commit fails, nothing of it is
 * published, and every owner is notified once.
 */
export class DurableJournal implements Journal {
  readonly keepsPieces = true;
  readonly #store: ThreadStore;
  readonly #onBug: (error: unknown) => void;
  #entries: Entry[] = [];
  #scheduled: NodeJS.Immediate | undefined;

  constructor(store: ThreadStore, onBug: (error: unknown) => void) {
    this.#store = store;
    this.#onBug = onBug;
  }

  add(owner: JournalOwner, write: (() => void) | undefined, publish: (() => void) | undefined): void {
    if (!write && this.#entries.length === 0) {
      publish?.();
      return;
    }
    this.#entries.push({ owner, write, publish });
    this.#scheduled ??= setImmediate(() => this.flush());
  }

  flush(): void {
    while (this.#entries.length > 0) {
      const entries = this.#entries;
      this.#entries = [];
      this.#commit(entries);
    }
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
  }

  #commit(entries: readonly Entry[]): void {
    try {
      this.#store.transaction(() => {
        for (const { write } of entries) write?.();
      });
    } catch (error) {
      const owners = new Set(entries.map(({ owner }) => owner));
      for (const owner of owners) this.#safely(() => owner.onStorageFault(error));
      return;
    }
    for (const { publish } of entries) if (publish) this.#safely(publish);
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
