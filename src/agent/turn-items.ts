import type { InputPart, Item, Turn, TurnError } from '../protocol/index.ts';
import type { ThreadEvent } from './feed.ts';

type SpokenType = 'agentMessage' | 'reasoningContent';

/** An item that is still growing. */
interface OpenItem {
  readonly id: string;
  readonly type: SpokenType;
  readonly createdAt: string;
  text: string;
}

const deltaMethods = { agentMessage: 'item/agentMessage/delta', reasoningContent: 'item/reasoning/delta' } as const;
const deltaKinds = { agentMessage: 'agentMessage', reasoningContent: 'reasoning' } as const;

/**
 * The items of one turn while it runs, and the events of their lives: started, then deltas, then completed. At most one
 * of them is open.
 */
export class TurnItems {
  readonly #threadId: string;
  readonly #turnId: string;
  readonly #publish: (event: ThreadEvent) => void;
  readonly #done: Item[] = [];
  #number: number;
  #open: OpenItem | undefined;

  /** @param firstNumber of the next item in this thread; ids count on through all its turns */
  constructor(turn: Pick<Turn, 'threadId' | 'id'>, firstNumber: number, publish: (event: ThreadEvent) => void) {
    this.#threadId = turn.threadId;
    this.#turnId = turn.id;
    this.#publish = publish;
    this.#number = firstNumber;
  }

  /** All items as they stand, the open one included. */
  snapshot(): Item[] {
    return this.#open ? [...this.#done, asItem(this.#open, this.#turnId, 'streaming')] : [...this.#done];
  }

  addUserMessage(input: readonly InputPart[]): void {
    this.#addWhole({ ...this.#base(), type: 'userMessage', input: [...input] });
  }

  addError(error: TurnError): void {
    this.close();
    this.#addWhole({ ...this.#base(), type: 'error', error });
  }

  /** Appends what the model said to the open item of this type; another type closes it and opens a new one. */
  append(type: SpokenType, delta: string): void {
    if (delta === '') return;
    const item = this.#open?.type === type ? this.#open : this.#begin(type);
    item.text += delta;
    const params = {
      threadId: this.#threadId,
      turnId: this.#turnId,
      itemId: item.id,
      deltaKind: deltaKinds[type],
      delta,
    };
    this.#publish({ method: deltaMethods[type], params });
  }

  /** Completes the open item, if there is one. */
  close(): void {
    if (!this.#open) return;
    const item = asItem(this.#open, this.#turnId, 'completed');
    this.#open = undefined;
    this.#done.push(item);
    this.#tell('item/completed', item);
  }

  #begin(type: SpokenType): OpenItem {
    this.close();
    const { id, createdAt } = this.#base();
    const item = { id, type, createdAt, text: '' };
    this.#open = item;
    this.#tell('item/started', asItem(item, this.#turnId, 'started'));
    return item;
  }

  #addWhole(item: Item): void {
    this.#tell('item/started', { ...item, status: 'started' });
    this.#done.push(item);
    this.#tell('item/completed', item);
  }

  #base() {
    const id = `item_${String(this.#number).padStart(3, '0')}`;
    this.#number += 1;
    return { id, turnId: this.#turnId, status: 'completed' as const, createdAt: new Date().toISOString() };
  }

  #tell(method: 'item/started' | 'item/completed', item: Item): void {
    this.#publish({ method, params: { threadId: this.#threadId, turnId: this.#turnId, item } });
  }
}

function asItem({ id, type, createdAt, text }: OpenItem, turnId: string, status: Item['status']): Item {
  return { id, turnId, type, status, createdAt, text };
}
