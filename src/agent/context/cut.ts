import type { Item } from '../../protocol/index.ts';

/** Fields of an item that a model reads, as text. */
function sizeOf(item: Item): number {
  switch (item.type) {
    case 'userMessage':
      return JSON.stringify(item.input).length;
    case 'agentMessage':
    case 'toolResult':
      return Buffer.byteLength(item.text);
    case 'toolCall':
      return Buffer.byteLength(item.arguments) + item.tool.length;
    default:
      return 0;
  }
}

/** Size of items as a model reads them, in bytes. */
export const sizeOfItems = (items: readonly Item[]): number => items.reduce((sum, item) => sum + sizeOf(item), 0);

/** Whether an answer of the model, or a request of a user, begins with this item. */
function isBoundary(items: readonly Item[], index: number): boolean {
  const item = items[index];
  const before = items[index - 1];
  if (!item || !before) return false;
  if (item.type === 'userMessage') return true;
  const isAnswer = item.type === 'agentMessage' || item.type === 'reasoningContent' || item.type === 'toolCall';
  return (
    isAnswer && (before.type === 'toolResult' || before.type === 'userMessage' || before.type === 'approvalResponse')
  );
}

/** Whether every call before `index` has its result before it. */
function isSettled(items: readonly Item[], index: number): boolean {
  const open = new Set<string>();
  for (const item of items.slice(0, index)) {
    if (item.type === 'toolCall') open.add(item.callId);
    else if (item.type === 'toolResult') open.delete(item.callId);
  }
  return open.size === 0;
}

/**
 * Index of the first item that stays: the newest `keepBytes`, beginning with an answer or a request, never between a call and its
 * result. 0 when nothing can be cut off.
 */
export function cutOf(items: readonly Item[], keepBytes: number): number {
  let size = 0;
  let best = 0;
  for (let index = items.length - 1; index > 0; index -= 1) {
    const item = items[index];
    if (item) size += sizeOf(item);
    if (size > keepBytes && best > 0) return best;
    if (isBoundary(items, index) && isSettled(items, index)) best = index;
  }
  return best;
}
