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
  /** True when pieces of an item are written before it is whole: for a later process. */
  readonly keepsPieces: boolean;
  /** `write` and `publish` happen in the order of the calls; `publish` at once when nothing is to be written before it. */
  add(owner: JournalOwner, write: (() => void) | undefined, publish: (() => void) | undefined): void;
  /** Writes and publishes everything pending, before a snapshot is given to a client that gets the events after it. */
  flush(): void;
}

/** Of threads that live in memory only: nothing can fail, and nothing waits. */
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
    // Nothing waits.
  }
}

/**
 * Writes, then publishes: everything announced to clients is on disk first, so that a kill loses no announced state.
 * Everything of one turn of the event loop, from all threads, shares one commit. When the disk refuses, nothing of that
 * batch is published, and every owner is notified once.
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

  /** One that fails keeps the others from nothing. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onBug(error);
    }
  }
}
