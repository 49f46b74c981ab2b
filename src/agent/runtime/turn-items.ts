import type { InputPart, Item, ItemOf, Turn, TurnError } from '../../protocol/index.ts';
import { timestamp } from './clock.ts';
import type { ThreadEvent } from './feed.ts';

type GrowingType = 'agentMessage' | 'reasoningContent' | 'commandExecution';

/** An item that is still growing. */
interface OpenItem {
  readonly item: ItemOf<GrowingType>;
  text: string;
}

const deltas = {
  agentMessage: { method: 'item/agentMessage/delta', kind: 'agentMessage' },
  reasoningContent: { method: 'item/reasoning/delta', kind: 'reasoning' },
  commandExecution: { method: 'item/commandExecution/outputDelta', kind: 'commandOutput' },
} as const;

/** Fields of an item besides those of every item. */
type Content<T extends Item['type']> = T extends Item['type']
  ? Omit<ItemOf<T>, 'id' | 'turnId' | 'status' | 'createdAt'>
  : never;

export interface TurnItemsOptions {
  readonly turn: Pick<Turn, 'threadId' | 'id'>;
  /** Of the next item in this thread; ids count on through all its turns. */
  readonly firstNumber: number;
  /** Publishes `event` once the write is done. */
  readonly publish: (write: ItemWrite, event: ThreadEvent) => void;
  /** Hears of every item once it is whole, with the milliseconds that it took. */
  readonly onCompleted: (item: Item, durationMs: number) => void;
}

/** Write to the store. */
export type ItemWrite =
  | { readonly put: Item }
  | { readonly append: string; readonly text: string }
  /** No write: the whole item follows. */
  | undefined;

/**
 * The items of one turn while it runs, and the events of their lives: started, then deltas, then completed. What the model
 * says is one open item at a time; commands run beside each other.
 */
export class TurnItems {
  readonly #options: TurnItemsOptions;
  readonly #items: Item[] = [];
  readonly #open = new Map<string, OpenItem>();
  readonly #began = new Map<string, number>();
  #number: number;
  #spoken: OpenItem | undefined;

  constructor(options: TurnItemsOptions) {
    this.#options = options;
    this.#number = options.firstNumber;
  }

  /** All items as they stand, the open ones included. */
  snapshot(): Item[] {
    return this.#items.map((item) => {
      const open = this.#open.get(item.id);
      return open ? grown(open, 'streaming') : item;
    });
  }

  get count(): number {
    return this.#items.length;
  }

  addUserMessage(input: readonly InputPart[]): void {
    this.add({ type: 'userMessage', input: [...input] });
  }

  addError(error: TurnError): void {
    this.add({ type: 'error', error });
  }

  /** Adds an item that is whole. Returns it. */
  add<T extends Item['type']>(content: Content<T>): ItemOf<T> {
    this.close();
    const item = { ...this.#base('completed'), ...content } as unknown as ItemOf<T>;
    this.#items.push(item);
    // Both are published after the item is written, which happens once.
    this.#publish('item/started', { put: item }, { ...item, status: 'started' });
    this.#publish('item/completed', undefined, item);
    this.#options.onCompleted(item, 0);
    return item;
  }

  /** Appends what the model said to the open item of this type; another type closes it and opens a new one. */
  append(type: 'agentMessage' | 'reasoningContent', delta: string): void {
    if (delta === '') return;
    if (this.#spoken?.item.type !== type) {
      this.close();
      this.#spoken = this.#begin({ type, text: '' });
    }
    this.#grow(this.#spoken, delta);
  }

  /** Completes what the model was saying, if it was. */
  close(): void {
    if (!this.#spoken) return;
    const { item, text } = this.#spoken;
    this.#spoken = undefined;
    this.#complete({ ...item, status: 'completed', text } as Item);
  }

  /** Opens the item of a command. */
  beginCommand(callId: string, command: string): { append: (text: string) => void; end: (end: CommandEnd) => void } {
    const open = this.#begin({ type: 'commandExecution', callId, command, output: '' });
    return {
      append: (text) => {
        if (text !== '' && this.#open.has(open.item.id)) this.#grow(open, text);
      },
      end: (end) => {
        if (this.#open.has(open.item.id)) {
          this.#complete({ ...open.item, status: 'completed', output: open.text, ...end } as Item);
        }
      },
    };
  }

  /** Publishes a piece of a call's arguments; the call itself is an item once it is whole. */
  publishArguments(callId: string, tool: string, delta: string): void {
    const { turn, publish } = this.#options;
    const params = {
      threadId: turn.threadId,
      turnId: turn.id,
      itemId: callId,
      deltaKind: 'toolCallArguments',
      delta,
      tool,
    };
    publish(undefined, { method: 'item/toolCall/argumentsDelta', params });
  }

  /** Completes whatever is open still: the turn is over. */
  closeAll(): void {
    this.close();
    for (const { item, text } of [...this.#open.values()]) {
      this.#complete({ ...item, status: 'completed', output: text, outcome: 'cancelled' } as Item);
    }
  }

  #begin(content: Content<GrowingType>): OpenItem {
    const item = { ...this.#base('started'), ...content } as ItemOf<GrowingType>;
    const open: OpenItem = { item, text: '' };
    this.#items.push(item);
    this.#open.set(item.id, open);
    this.#began.set(item.id, performance.now());
    this.#publish('item/started', { put: { ...item, status: 'streaming' } }, item);
    return open;
  }

  #grow(open: OpenItem | undefined, delta: string): void {
    if (!open) return;
    open.text += delta;
    const { turn, publish } = this.#options;
    const { id, type } = open.item;
    const { method, kind } = deltas[type];
    const params = { threadId: turn.threadId, turnId: turn.id, itemId: id, deltaKind: kind, delta };
    publish({ append: id, text: delta }, { method, params });
  }

  #complete(item: Item): void {
    this.#open.delete(item.id);
    this.#items[this.#items.findIndex(({ id }) => id === item.id)] = item;
    this.#publish('item/completed', { put: item }, item);
    const began = this.#began.get(item.id) ?? performance.now();
    this.#began.delete(item.id);
    this.#options.onCompleted(item, performance.now() - began);
  }

  #base(status: Item['status']) {
    const id = `item_${String(this.#number).padStart(3, '0')}`;
    this.#number += 1;
    return { id, turnId: this.#options.turn.id, status, createdAt: timestamp() };
  }

  #publish(method: 'item/started' | 'item/completed', write: ItemWrite, item: Item): void {
    const { turn, publish } = this.#options;
    publish(write, { method, params: { threadId: turn.threadId, turnId: turn.id, item } });
  }
}

/** End of a command. */
export type CommandEnd = Pick<ItemOf<'commandExecution'>, 'exitCode' | 'outcome'>;

function grown({ item, text }: OpenItem, status: Item['status']): Item {
  return item.type === 'commandExecution' ? { ...item, status, output: text } : { ...item, status, text };
}
