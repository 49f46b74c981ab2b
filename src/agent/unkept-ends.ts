import type { Turn } from '../protocol/index.ts';
import type { ThreadStore } from './thread-store.ts';

/**
 * Turns that failed because the disk did not take them: at most one of a thread, as it was told to clients. Read from
 * here until the disk takes it, which has to be before the next turn of its thread.
 */
export class UnkeptEnds {
  readonly #turns = new Map<string, Turn>();

  add(turn: Turn): void {
    this.#turns.set(turn.threadId, turn);
  }

  /** The turn as it ended. */
  endOf(turn: Turn): Turn {
    const unkept = this.#turns.get(turn.threadId);
    return unkept?.id === turn.id ? unkept : turn;
  }

  /** Writes what is missing of this thread, if anything is. @throws StorageError */
  write(threadId: string, store: ThreadStore): void {
    const unkept = this.#turns.get(threadId);
    if (!unkept) return;
    const { items, ...turn } = unkept;
    // What was rolled back, or deleted with its thread, is not missing.
    if (store.turn(threadId, turn.id)) {
      store.transaction(() => {
        for (const item of items) store.putItem(threadId, item);
        store.putTurn(turn);
      });
    }
    this.#turns.delete(threadId);
  }

  get threadIds(): readonly string[] {
    return [...this.#turns.keys()];
  }
}
