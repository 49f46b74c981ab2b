import type { Item, Turn } from '../../protocol/index.ts';
import type { CompactedPart } from '../thread-store.ts';

/** Whether an item has a text that `appendItemText` adds to. */
export function canGrow(item: Item): boolean {
  return 'text' in item || 'output' in item;
}

/** The item with `delta` at the end of its text; an item without a text is returned unchanged. */
export function withText(item: Item, delta: string): Item {
  if ('output' in item) return { ...item, output: item.output + delta };
  return 'text' in item ? { ...item, text: item.text + delta } : item;
}

/** The number at the end of an id (`turn_012`: 12), 0 without one. */
export function numberIn(id: string): number {
  return Number(/\d{1,15}$/.exec(id)?.[0] ?? 0);
}

/** Turns without the items that a compaction covers. */
export function withoutCompacted(turns: readonly Turn[], compaction: CompactedPart | undefined): readonly Turn[] {
  const { throughTurnId, throughItemId } = compaction ?? {};
  if (throughItemId === undefined) return turns;
  const last = numberIn(throughItemId);
  return turns.map((turn) =>
    turn.id === throughTurnId ? { ...turn, items: turn.items.filter(({ id }) => numberIn(id) > last) } : turn,
  );
}
