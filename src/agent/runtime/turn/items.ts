import { WellFormedStream, wellFormed } from '../../../lib/index.ts';
import type { InputPart, Item, ItemOf, ToolOutcome, TurnError } from '../../../protocol/index.ts';
import type { ThreadStore } from '../../thread-store.ts';
import { timestamp } from '../clock.ts';
import type { ThreadEvent } from '../feed.ts';
import type { Journal, JournalOwner } from '../journal.ts';
import type { TurnPlace } from './thread.ts';

type GrowingType = 'agentMessage' | 'reasoningContent' | 'commandExecution';

/** An item that is still growing. */
interface OpenItem {
  readonly item: ItemOf<GrowingType>;
  text: string;
  /** End of the text that no write of the journal has yet. */
  unwritten: string;
  /** A piece may end in the middle of a character. */
  readonly pieces: WellFormedStream;
}

const deltas = {
  agentMessage: { method: 'item/agentMessage/delta', kind: 'agentMessage' },
  reasoningContent: { method: 'item/reasoning/delta', kind: 'reasoning' },
  commandExecution: { method: 'item/commandExecution/outputDelta', kind: 'commandOutput' },
} as const;

/** Fields of an item besides the common ones. */
export type Content<T extends Item['type']> = T extends Item['type']
  ? Omit<ItemOf<T>, 'id' | 'turnId' | 'status' | 'createdAt'>
  : never;

export interface TurnItemsOptions {
  readonly place: TurnPlace;
  readonly store: ThreadStore;
  readonly journal: Journal;
  readonly owner: JournalOwner;
  /** Items of an earlier process, complete. */
  readonly stored?: readonly Item[] | undefined;
  /** Called with each completed item and its duration in milliseconds. */
  readonly onCompleted: (item: Item, durationMs: number) => void;
}

/**
 * Items of one running turn and their events: started, deltas, completed. Each is written by the journal before it is published. Text
 * of the model is one open item at a time; several commands can be open. Every text is well-formed, also one of an external agent or a
 * tool.
 */
export class TurnItems {
  readonly #options: TurnItemsOptions;
  readonly #items: Item[];
  readonly #open = new Map<string, OpenItem>();
  readonly #began = new Map<string, number>();
  /** Arguments of calls that the model is writing, by call id. */
  readonly #arguments = new Map<string, WellFormedStream>();
  /** Number of the next item in this thread; numbers continue through all its turns. */
  #number: number;
  #isSealed = false;
  #openText: OpenItem | undefined;
  /** Number of items before the present answer. */
  #answerStart = 0;

  constructor(options: TurnItemsOptions) {
    this.#options = options;
    this.#number = options.store.nextItemNumber(options.place.threadId);
    this.#items = [...(options.stored ?? [])];
    this.#answerStart = this.#items.findLastIndex((item) => !isText(item)) + 1;
  }

  /** After `seal` nothing is written or published: late output of a tool or a model is dropped. */
  get isSealed(): boolean {
    return this.#isSealed;
  }

  seal(): void {
    this.#isSealed = true;
  }

  /** All current items, open ones included. */
  snapshot(): Item[] {
    return this.#items.map((item) => {
      const open = this.#open.get(item.id);
      return open ? grown(open, 'streaming') : item;
    });
  }

  /** Calls for the server without a result, oldest first. */
  get openCalls(): readonly ItemOf<'toolCall'>[] {
    const open: ItemOf<'toolCall'>[] = [];
    for (const item of this.#items) {
      if (item.type === 'toolCall' && item.source !== 'client') open.push(item);
      if (item.type !== 'toolResult') continue;
      const index = open.findIndex(({ callId }) => callId === item.callId);
      if (index >= 0) open.splice(index, 1);
    }
    return open;
  }

  /** The newest item of this type that meets the condition. */
  last<T extends Item['type']>(type: T, isMeant: (item: ItemOf<T>) => boolean): ItemOf<T> | undefined {
    const isOfType = (item: Item): item is ItemOf<T> => item.type === type;
    return this.#items.filter(isOfType).findLast(isMeant);
  }

  get count(): number {
    return this.#items.length;
  }

  /** Id of the newest item; undefined before the first. */
  get lastId(): string | undefined {
    return this.#items.at(-1)?.id;
  }

  /** Text of the newest message of the agent; empty: no message yet. */
  get lastMessage(): string {
    const last = this.snapshot().findLast((item) => item.type === 'agentMessage' && !item.discarded);
    return last?.type === 'agentMessage' ? last.text : '';
  }

  addUserMessage(input: readonly InputPart[]): ItemOf<'userMessage'> {
    return this.add<'userMessage'>(userMessage(input));
  }

  addError(error: TurnError): void {
    this.add({ type: 'error', error });
  }

  /** Adds a complete item. Returns it. */
  add<T extends Item['type']>(content: Content<T>): ItemOf<T> {
    this.close();
    const item = this.make(content);
    this.#add(item, true);
    return item;
  }

  /** Makes a complete item, which its caller stores and passes to `addStored`. */
  make<T extends Item['type']>(content: Content<T>): ItemOf<T> {
    return { ...this.#base('completed'), ...wellFormed(content) } as unknown as ItemOf<T>;
  }

  /** Adds an open item, which `finish` completes. */
  begin<T extends Item['type']>(content: Content<T>): ItemOf<T> {
    this.close();
    const item = { ...this.make(content), status: 'started' } as ItemOf<T>;
    this.#items.push(item);
    this.#write(item, this.#event('item/started', item));
    return item;
  }

  finish(item: Item): void {
    this.#complete({ ...item, status: 'completed' });
  }

  addStored(item: Item): void {
    this.close();
    this.#add(item, false);
  }

  /** Appends text of the model to the open item of this type; another type closes that item and opens a new one. */
  append(type: 'agentMessage' | 'reasoningContent', delta: string): void {
    if (delta === '') return;
    if (this.#openText?.item.type !== type) {
      this.close();
      this.#openText = this.#begin({ type, text: '' });
    }
    const open = this.#openText;
    if (open) this.#append(open, open.pieces.write(delta));
  }

  /** Completes the open message as a thought, which it turned out to be. */
  closeAsThought(): void {
    const open = this.#openText;
    if (open?.item.type === 'agentMessage')
      this.#openText = { ...open, item: { ...open.item, type: 'reasoningContent' } };
    this.close();
  }

  /** Completes the open text of the model, if there is one. */
  close(): void {
    if (!this.#openText) return;
    const open = this.#openText;
    this.#openText = undefined;
    this.#append(open, open.pieces.end());
    this.#complete({ ...open.item, status: 'completed', text: open.text } as Item);
  }

  /** A request to the model begins: the texts from here on belong to its answer. */
  beginAnswer(): void {
    this.close();
    this.#answerStart = this.#items.length;
  }

  /** Withdraws the texts of the present answer, which broke off and is requested again. @returns whether there were any */
  discardAnswer(): boolean {
    this.close();
    const itemIds: string[] = [];
    for (const [index, item] of this.#items.entries()) {
      if (index < this.#answerStart || !isText(item)) continue;
      const discarded = { ...item, discarded: true as const };
      this.#items[index] = discarded;
      itemIds.push(item.id);
      this.#write(discarded, undefined);
    }
    if (itemIds.length === 0) return false;
    this.publish({ method: 'item/discarded', params: { ...this.#options.place, itemIds } });
    return true;
  }

  /** Publishes an event of the turn after its earlier writes. */
  publish(event: ThreadEvent): void {
    this.#write(undefined, event);
  }

  /** Opens the item of a command. */
  beginCommand(callId: string, command: string): { append: (text: string) => void; end: (end: CommandEnd) => void } {
    const open = this.#begin({ type: 'commandExecution', callId, command: command.toWellFormed(), output: '' });
    return {
      append: (text) => {
        if (text !== '' && this.#open.has(open.item.id)) this.#append(open, open.pieces.write(text));
      },
      end: (end) => {
        if (this.#open.has(open.item.id)) {
          this.#append(open, open.pieces.end());
          this.#complete({ ...open.item, status: 'completed', output: open.text, ...end } as Item);
        }
      },
    };
  }

  /** Publishes a piece of a call's arguments; the call becomes an item when it is complete. */
  publishArguments(callId: string, tool: string, delta: string): void {
    const pieces = this.#arguments.get(callId) ?? new WellFormedStream();
    this.#arguments.set(callId, pieces);
    const whole = pieces.write(delta);
    if (whole === '') return;
    const params = {
      ...this.#options.place,
      itemId: callId.toWellFormed(),
      deltaKind: 'toolCallArguments',
      delta: whole,
      tool: tool.toWellFormed(),
    };
    this.publish({ method: 'item/toolCall/argumentsDelta', params });
  }

  /** Completes all open items. @param outcome of commands that run */
  closeAll(outcome: ToolOutcome): void {
    this.close();
    for (const open of [...this.#open.values()]) {
      this.#append(open, open.pieces.end());
      this.#complete({ ...open.item, status: 'completed', output: open.text, outcome } as Item);
    }
  }

  #add(item: Item, isNew: boolean): void {
    this.#items.push(item);
    // Calls are written before the first of them becomes an item.
    this.#arguments.clear();
    // One write serves both events.
    this.#write(isNew ? item : undefined, this.#event('item/started', { ...item, status: 'started' }));
    this.#write(undefined, this.#event('item/completed', item));
    this.#options.onCompleted(item, 0);
  }

  #begin(content: Content<GrowingType>): OpenItem {
    const item = { ...this.#base('started'), ...content } as ItemOf<GrowingType>;
    const open: OpenItem = { item, text: '', unwritten: '', pieces: new WellFormedStream() };
    this.#items.push(item);
    this.#open.set(item.id, open);
    this.#began.set(item.id, performance.now());
    this.#write({ ...item, status: 'streaming' }, this.#event('item/started', item));
    return open;
  }

  /** Hot path: called for each piece of an answer. Pieces of one turn of the event loop become one write. */
  #append(open: OpenItem, delta: string): void {
    if (delta === '') return;
    open.text += delta;
    if (this.#isSealed) return;
    const { place, journal, store, owner } = this.#options;
    const { id, type } = open.item;
    const { method, kind } = deltas[type];
    const event = { method, params: { ...place, itemId: id, deltaKind: kind, delta } } as ThreadEvent;
    const isPending = open.unwritten !== '' || !journal.keepsPieces;
    if (journal.keepsPieces) open.unwritten += delta;
    const write = () => {
      store.appendItemText(place.threadId, id, open.unwritten);
      open.unwritten = '';
    };
    journal.add(owner, isPending ? undefined : write, event);
  }

  #complete(item: Item): void {
    this.#open.delete(item.id);
    this.#items[this.#items.findIndex(({ id }) => id === item.id)] = item;
    this.#write(item, this.#event('item/completed', item));
    const began = this.#began.get(item.id) ?? performance.now();
    this.#began.delete(item.id);
    this.#options.onCompleted(item, performance.now() - began);
  }

  #base(status: Item['status']) {
    const id = itemId(this.#number);
    this.#number += 1;
    return { id, turnId: this.#options.place.turnId, status, createdAt: timestamp() };
  }

  #event(method: 'item/started' | 'item/completed', item: Item): ThreadEvent {
    return { method, params: { ...this.#options.place, item } };
  }

  /** Writes the item, then publishes the event. */
  #write(item: Item | undefined, event: ThreadEvent | undefined): void {
    if (this.#isSealed) return;
    const { journal, store, owner, place } = this.#options;
    journal.add(owner, item && (() => store.putItem(place.threadId, item)), event);
  }
}

const isText = (item: Item): item is ItemOf<'agentMessage' | 'reasoningContent'> =>
  item.type === 'agentMessage' || item.type === 'reasoningContent';

export const userMessage = (input: readonly InputPart[], messageId?: string): Content<'userMessage'> => ({
  type: 'userMessage',
  input: [...input],
  ...(messageId !== undefined && { messageId }),
});

/** End of a command. */
export type CommandEnd = Pick<ItemOf<'commandExecution'>, 'exitCode' | 'outcome'>;

function grown({ item, text }: OpenItem, status: Item['status']): Item {
  return item.type === 'commandExecution' ? { ...item, status, output: text } : { ...item, status, text };
}

/** Id of an item. @param number from 1 within a thread */
export const itemId = (number: number): string => `item_${String(number).padStart(3, '0')}`;
