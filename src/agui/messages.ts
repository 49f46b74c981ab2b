import type { Item } from '../protocol/index.ts';
import type { AguiMessage } from './events.ts';
import type { Message } from './input.ts';

type Assistant = Extract<AguiMessage, { role: 'assistant' }>;

/** After one of these an assistant begins a new message. */
const separators: ReadonlySet<Item['type']> = new Set(['userMessage', 'reasoningContent', 'toolResult']);

/**
 * Which assistant message a tool call belongs to: the one whose text comes right before it, else one that begins with the
 * call itself. Fed with items in order.
 */
export class CallParents {
  #parent: string | undefined;

  /** Notes an item; returns the message of a tool call. */
  of(item: Pick<Item, 'id' | 'type'>): string {
    if (item.type === 'agentMessage') this.#parent = item.id;
    else if (item.type === 'toolCall') this.#parent ??= item.id;
    else if (separators.has(item.type)) this.#parent = undefined;
    return this.#parent ?? item.id;
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

/** What the client has sent, with everything of these items as it stands now: in its place, or at the end. */
export function restated(sent: readonly Message[], items: readonly Item[]): AguiMessage[] {
  const own = new Map(messagesOf(items).map((message) => [message.id, message]));
  const known = new Set(sent.map(({ id }) => id));
  // Results that the client gave itself are among its own messages.
  const answered = new Set(sent.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : [])));
  const told = [...own.values()].filter(
    (message) => !known.has(message.id) && (message.role !== 'tool' || !answered.has(message.toolCallId)),
  );
  // The schema of what a client sends is the protocol's, and looser in nothing but names that the protocol leaves open.
  return [...sent.map((message) => own.get(message.id) ?? (message as AguiMessage)), ...told];
}
