import type { Item, Turn } from '../../protocol/index.ts';
import type { CompactedPart } from '../thread-store.ts';

/** Characters of a first request that a list needs, because its first words serve as a name. */
export const firstInputChars = 400;

/** SQL: text of the first request of a thread as its author wrote it. @param threadKey expression with the key of the thread */
export const firstInputOf = (threadKey: string): string => `(
  SELECT (
    SELECT group_concat(substr(CASE value ->> 'type' WHEN 'text' THEN value ->> 'text' ELSE
      ifnull(value ->> 'rawText', '/' || (value ->> 'name') || ' ' || ifnull(value ->> 'argsText', '')) END, 1, ${firstInputChars}), char(10))
    FROM json_each(items.json, '$.input') WHERE value ->> 'type' IN ('text', 'commandRef')
  )
  FROM items WHERE thread = ${threadKey} AND json ->> 'type' = 'userMessage' ORDER BY turn, key LIMIT 1)`;

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
