import { defaults, type Turn } from '../../protocol/index.ts';
import { StorageError, type ThreadStore } from '../thread-store.ts';
import type { Feed, Listener, ThreadEvent } from './feed.ts';

/** Turn that writes and publishes. */
export interface JournalOwner {
  readonly threadId: string;
  /** Client that receives the events without a subscription. */
  readonly asker: Listener | undefined;
  /** Called when a write failed; nothing of its commit was published. */
  onStorageFault(error: unknown): void;
  /** Writes the changed state of the turn into a commit of its other writes. */
  joinCommit?(): void;
  /** Called when the commit that `joinCommit` joined is done. */
  onCommitted?(): void;
}

interface Entry {
  readonly owner: JournalOwner;
  readonly write: (() => void) | undefined;
  readonly event: ThreadEvent | undefined;
  readonly onSaved: (() => void) | undefined;
  /** The commit survives a power cut. */
  readonly isFlushed?: boolean;
}

/** Takes the writes and events of turns. */
export interface Journal {
  /** True when pieces of an item are written before it is complete, so that a crash loses none of them. */
  readonly keepsPieces: boolean;
  /**
   * Writes, then publishes the event, in the order of the calls. Without a pending write the event is published at once.
   *
   * @param onSaved called after the commit of the write
   */
  add(owner: JournalOwner, write: (() => void) | undefined, event: ThreadEvent | undefined, onSaved?: () => void): void;
  /**
   * Writes with the next commit, for a turn that is not running yet.
   *
   * @throws the error of the commit; nothing of it is stored
   */
  store(threadId: string, write: () => void): Promise<void>;
  /** Writes at once, so that a power cut does not lose it. Resolves after the commit; never resolves if the commit fails. */
  secure(owner: JournalOwner, write: () => void): Promise<void>;
  /** Resolves after the commit of the pending writes of this owner; never resolves if the commit fails. Undefined: no write is pending. */
  committed(owner: JournalOwner): Promise<void> | undefined;
  /**
   * Writes and publishes all pending changes. Call it before a snapshot for a client that receives only later events.
   *
   * @param threadId writes only if this thread has pending changes
   */
  flush(threadId?: string): void;
}

/** Journal of ephemeral threads: writes and publishes at once. */
export class VolatileJournal implements Journal {
  readonly keepsPieces = false;
  readonly #feed: Feed;
  readonly #onBug: (error: unknown) => void;

  constructor(feed: Feed, onBug: (error: unknown) => void) {
    this.#feed = feed;
    this.#onBug = onBug;
  }

  add(
    { threadId, asker }: JournalOwner,
    write: (() => void) | undefined,
    event: ThreadEvent | undefined,
    onSaved?: () => void,
  ): void {
    try {
      write?.();
      if (event) this.#feed.publish(threadId, event, asker);
      onSaved?.();
    } catch (error) {
      this.#onBug(error);
    }
  }

  async store(_threadId: string, write: () => void): Promise<void> {
    write();
  }

  async secure(_owner: JournalOwner, write: () => void): Promise<void> {
    write();
  }

  committed(): undefined {
    // Nothing is pending.
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
  readonly #feed: Feed;
  readonly #onBug: (error: unknown) => void;
  #entries: Entry[] = [];
  #scheduled: NodeJS.Immediate | undefined;
  readonly #patience: JournalPatience;
  /** The next try, and when the waiting began. */
  #waiting: { readonly timer: NodeJS.Timeout; readonly since: number } | undefined;

  constructor(
    store: ThreadStore,
    feed: Feed,
    onBug: (error: unknown) => void,
    patience: JournalPatience = usualPatience,
  ) {
    this.#store = store;
    this.#feed = feed;
    this.#onBug = onBug;
    this.#patience = patience;
  }

  add(
    owner: JournalOwner,
    write: (() => void) | undefined,
    event: ThreadEvent | undefined,
    onSaved?: () => void,
  ): void {
    if (!write && this.#entries.length === 0) {
      if (event) this.#feed.publish(owner.threadId, event, owner.asker);
      return;
    }
    this.#entries.push({ owner, write, event, onSaved });
    if (!this.#waiting) this.#scheduled ??= setImmediate(() => this.flush());
  }

  store(threadId: string, write: () => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.add({ threadId, asker: undefined, onStorageFault: reject }, write, undefined, resolve);
    return promise;
  }

  secure(owner: JournalOwner, write: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#entries.push({ owner, write, event: undefined, onSaved: resolve, isFlushed: true });
    if (!this.#waiting) this.flush();
    return promise;
  }

  /** Waits for the scheduled commit: separate commits for many turns cost far more than one for all. */
  committed(owner: JournalOwner): Promise<void> | undefined {
    if (!this.#entries.some((entry) => entry.owner === owner)) return undefined;
    return new Promise((resolve) => this.add(owner, undefined, undefined, resolve));
  }

  flush(threadId?: string): void {
    if (threadId !== undefined && !this.#entries.some(({ owner }) => owner.threadId === threadId)) return;
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
    const owners = new Set(entries.map(({ owner }) => owner));
    try {
      this.#store.transaction(
        () => {
          for (const owner of owners) owner.joinCommit?.();
          for (const { write } of entries) write?.();
        },
        entries.some(({ isFlushed }) => isFlushed),
      );
    } catch (error) {
      const { retryMs, lockedMs } = this.#patience;
      if (error instanceof StorageError && error.code === 'busy' && performance.now() - since < lockedMs) {
        this.#entries = [...entries, ...this.#entries];
        this.#waiting = { timer: setTimeout(() => this.flush(), retryMs), since };
        return false;
      }
      for (const owner of owners) this.#safely(() => owner.onStorageFault(error));
      return true;
    }
    for (const owner of owners) owner.onCommitted?.();
    for (const { owner, event, onSaved } of entries) {
      if (event) this.#feed.publish(owner.threadId, event, owner.asker);
      if (onSaved) this.#safely(onSaved);
    }
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

/**
 * Ended turns that could not be written because the disk was full or failed: at most one per thread, in the form reported to
 * clients. Reads return it until it is written, which must happen before the next turn of its thread.
 */
export class PendingTurnWrites {
  readonly #turns = new Map<string, Turn>();

  add(turn: Turn): void {
    this.#turns.set(turn.threadId, turn);
  }

  /** The pending end of the turn, or the turn as given. */
  endOf(turn: Turn): Turn {
    const pending = this.#turns.get(turn.threadId);
    return pending?.id === turn.id ? pending : turn;
  }

  /** Writes the pending turn of this thread, if it has one. @throws StorageError */
  write(threadId: string, store: ThreadStore): void {
    const pending = this.#turns.get(threadId);
    if (!pending) return;
    const { items, ...turn } = pending;
    // A turn that was rolled back, or deleted with its thread, is not written.
    if (store.turn(threadId, turn.id)) {
      store.transaction(() => {
        for (const item of items) store.putItem(threadId, item);
        store.putTurn(turn);
        store.turnActors.delete(threadId, turn.id);
      });
    }
    this.#turns.delete(threadId);
  }

  get threadIds(): readonly string[] {
    return [...this.#turns.keys()];
  }
}
