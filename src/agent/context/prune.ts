import type { ModelMessage } from '../model.ts';
import { bytesOf } from '../tokens.ts';

/** Stands for an old result. */
const leftOut = '[left out to save room; run the tool again if the result is needed]';

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;

export interface PruneOptions {
  /** Newest bytes of the conversation, whose results stay. */
  readonly keepBytes: number;
  /** Longest single result. */
  readonly maxResultBytes: number;
  /** Least bytes that make pruning worth it: it ends the provider's cache of the conversation. */
  readonly minBytes: number;
}

/** Replaces old results, and the middle of a result that alone is too long. Returns undefined when pruning is not worth it. */
export function pruned(messages: readonly ModelMessage[], options: PruneOptions): ModelMessage[] | undefined {
  const { keepBytes, maxResultBytes, minBytes } = options;
  let newer = 0;
  let won = 0;
  const kept = messages.toReversed().map((message): ModelMessage => {
    const isOld = newer >= keepBytes;
    const size = bytesOf(message);
    newer += size;
    if (message.role !== 'tool') return message;
    const replaced = isOld ? emptied(message) : clipped(message, maxResultBytes);
    won += size - bytesOf(replaced);
    return replaced;
  });
  return won >= minBytes ? kept.toReversed() : undefined;
}

function emptied(message: ToolMessage): ToolMessage {
  const shorter: ToolMessage = { ...message, content: [{ type: 'text', text: leftOut }] };
  return bytesOf(shorter) < bytesOf(message) ? shorter : message;
}

function clipped(message: ToolMessage, maxBytes: number): ToolMessage {
  if (bytesOf(message) <= maxBytes) return message;
  const text = message.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('\n');
  const half = Math.floor(maxBytes / 2);
  if (text.length <= maxBytes) return message;
  const note = `\n[… ${text.length - 2 * half} characters left out: the model's window is too small; ask for a smaller part …]\n`;
  return { ...message, content: [{ type: 'text', text: `${text.slice(0, half)}${note}${text.slice(-half)}` }] };
}
