import type { Turn } from '../../protocol/index.ts';
import type { ThreadStore } from '../thread-store.ts';

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
      });
    }
    this.#turns.delete(threadId);
  }

  get threadIds(): readonly string[] {
    return [...this.#turns.keys()];
  }
}
