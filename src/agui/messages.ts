import { isDiscarded } from '../agent/index.ts';
import type { Item, Turn } from '../protocol/index.ts';
import type { AguiMessage } from './events.ts';
import type { Message } from './input.ts';

type Assistant = Extract<AguiMessage, { role: 'assistant' }>;

/** After one of these an assistant begins a new message. */
const separators: ReadonlySet<Item['type']> = new Set(['userMessage', 'reasoningContent', 'toolResult']);

/** Before the id of a message that begins with a call. */
const callPrefix = (turnId: string): string => `${turnId}:call:`;

/**
 * Which assistant message a tool call belongs to: the one whose text comes right before it, else one that begins with the
 * call itself, and has its name from it: while the model writes the call there is no item. Fed with items in order.
 */
export class CallParents {
  #parent: string | undefined;

  /** Notes an item; returns the message of a tool call. */
  of(item: Item): string {
    if (item.type === 'toolCall') return this.ofCall(item.turnId, item.callId);
    this.follow(item.type, item.id);
    return this.#parent ?? item.id;
  }

  /** The message of a call that the model has begun to write. */
  ofCall(turnId: string, callId: string): string {
    this.#parent ??= callPrefix(turnId) + callId;
    return this.#parent;
  }

  /** Adds an item that is not a call. */
  follow(type: Item['type'], id: string): void {
    if (type === 'agentMessage') this.#parent = id;
    else if (separators.has(type)) this.#parent = undefined;
  }
}

/** The messages that a client has after it has heard of all these items; those of the user are its own already. */
export function messagesOf(items: readonly Item[]): AguiMessage[] {
  const messages: AguiMessage[] = [];
  const parents = new CallParents();
  const assistant = (id: string): Assistant => {
    const known = messages.find((message): message is Assistant => message.role === 'assistant' && message.id === id);
    if (known) return known;
    const made: Assistant = { id, role: 'assistant' };
    messages.push(made);
    return made;
  };
  for (const item of items) {
    if (isDiscarded(item)) continue;
    const parent = parents.of(item);
    switch (item.type) {
      case 'agentMessage':
        assistant(item.id).content = item.text;
        break;
      case 'reasoningContent':
        messages.push({ id: item.id, role: 'reasoning', content: item.text });
        break;
      case 'toolCall': {
        const owner = assistant(parent);
        owner.toolCalls ??= [];
        owner.toolCalls.push({
          id: item.callId,
          type: 'function',
          function: { name: item.tool, arguments: item.arguments },
        });
        break;
      }
      case 'toolResult':
        messages.push({ id: item.id, role: 'tool', toolCallId: item.callId, content: item.text });
        break;
    }
  }
  return messages;
}

/** Whether the client has received a part of a turn. */
export function hasSeen(messages: readonly Message[], { id: turnId, items }: Pick<Turn, 'id' | 'items'>): boolean {
  const ids = new Set(items.map(({ id }) => id));
  return messages.some(({ id }) => ids.has(id) || id.startsWith(callPrefix(turnId)));
}

/**
 * Returns the client's messages with all of these items of the turn as it stands now: in its place, or at the end. A call
 * that is not among them was only begun. Discarded messages are left out.
 */
export function restated(sent: readonly Message[], turnId: string, items: readonly Item[]): AguiMessage[] {
  const own = new Map(messagesOf(items).map((message) => [message.id, message]));
  const known = new Set(sent.map(({ id }) => id));
  // Results that the client gave itself are among its own messages.
  const answered = new Set(sent.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : [])));
  const added = [...own.values()].filter(
    (message) => !known.has(message.id) && (message.role !== 'tool' || !answered.has(message.toolCallId)),
  );
  // The schema of a client's input is the protocol's, and looser only in names that the protocol leaves open.
  const discarded = new Set(items.filter(isDiscarded).map(({ id }) => id));
  const kept = sent.filter(({ id }) => own.has(id) || !(discarded.has(id) || id.startsWith(callPrefix(turnId))));
  return [...kept.map((message) => own.get(message.id) ?? (message as AguiMessage)), ...added];
}
