import type { Thread, Turn } from '../protocol/index.ts';

/** A thread as it is kept: without its turns. */
export type StoredThread = Omit<Thread, 'turns'>;

/**
 * Where threads are kept. Synchronous, because the store is in this process (memory now, SQLite next) and an answer must
 * not overtake what it tells of. What is handed in and out is never changed afterwards.
 */
export interface ThreadStore {
  /** Inserts or replaces. */
  putThread(thread: StoredThread): void;
  thread(threadId: string): StoredThread | undefined;
  /** In no particular order. */
  threads(): readonly StoredThread[];
  /** Inserts, or replaces the turn with the same id. */
  putTurn(turn: Turn): void;
  /** Oldest first. */
  turns(threadId: string): readonly Turn[];
}

/** Threads that last as long as the process. */
export class MemoryThreadStore implements ThreadStore {
  readonly #threads = new Map<string, { thread: StoredThread; readonly turns: Map<string, Turn> }>();

  putThread(thread: StoredThread): void {
    const entry = this.#threads.get(thread.id);
    if (entry) entry.thread = thread;
    else this.#threads.set(thread.id, { thread, turns: new Map() });
  }

  thread(threadId: string): StoredThread | undefined {
    return this.#threads.get(threadId)?.thread;
  }

  threads(): readonly StoredThread[] {
    return Array.from(this.#threads.values(), ({ thread }) => thread);
  }

  putTurn(turn: Turn): void {
    this.#threads.get(turn.threadId)?.turns.set(turn.id, turn);
  }

  turns(threadId: string): readonly Turn[] {
    return [...(this.#threads.get(threadId)?.turns.values() ?? [])];
  }
}
