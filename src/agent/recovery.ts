import type { Item, Turn } from '../protocol/index.ts';
import type { ThreadStore } from './thread-store.ts';
import type { Tracer } from './tracer.ts';

/**
 * Turns that a process left behind which is no more are marked as interrupted by its crash; what was said in them stays,
 * and their threads can go on.
 */
export function markCrashed(store: ThreadStore, tracer: Tracer | undefined): void {
  const unfinished = store.unfinishedTurns();
  if (unfinished.length === 0) return;
  const completedAt = new Date().toISOString();
  store.transaction(() => {
    for (const { items, ...turn } of unfinished) {
      for (const item of items) if (item.status !== 'completed') store.putItem(turn.threadId, completed(item));
      store.putTurn({ ...turn, status: 'cancelled', interruptedBy: 'crash', completedAt });
    }
  });
  for (const turn of unfinished) tracer?.turnEnded(ended(turn, completedAt));
}

const ended = (turn: Turn, completedAt: string): Turn => ({
  ...turn,
  status: 'cancelled',
  interruptedBy: 'crash',
  completedAt,
});

function completed(item: Item): Item {
  if (item.type === 'commandExecution') return { ...item, status: 'completed', outcome: 'cancelled' };
  return { ...item, status: 'completed' };
}
