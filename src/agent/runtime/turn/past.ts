import type { Item, Turn } from '../../../protocol/index.ts';
import { conversationOf } from '../../context/index.ts';
import { type Additions, imagePathsOf } from '../../history.ts';
import type { ModelMessage, ModelState } from '../../model.ts';
import type { Compaction } from '../../thread-store.ts';
import type { TurnContext } from './context.ts';

/** Earlier turns after the latest summary, and that summary. */
interface Past {
  readonly compaction: Compaction | undefined;
  readonly turns: readonly Turn[];
  readonly states: ReadonlyMap<string, ModelState>;
}

/** Stored part of a conversation: the latest summary, the turns since, the items of the running turn, states of answers. */
export class TurnPast {
  readonly #turn: TurnContext;
  #past: Past | undefined;
  /** States of answers of this turn by their last items. */
  readonly #states = new Map<string, ModelState>();

  constructor(turn: TurnContext) {
    this.#turn = turn;
  }

  get compaction(): Compaction | undefined {
    return this.#read().compaction;
  }

  /** Items of the conversation that no summary covers yet, oldest first. */
  items(): readonly Item[] {
    return [...this.#read().turns.flatMap(({ items }) => items), ...this.ownItems()];
  }

  /** Items of this turn that no summary covers yet. */
  ownItems(): readonly Item[] {
    const { turnId } = this.#turn.place;
    const { compaction } = this.#read();
    const own = this.#turn.record.items.snapshot();
    if (compaction?.throughTurnId !== turnId) return own;
    return own.slice(own.findIndex(({ id }) => id === compaction.throughItemId) + 1);
  }

  /** Paths of the images in the conversation. */
  imagePaths(): readonly string[] {
    return imagePathsOf([...this.#read().turns, this.#now()]);
  }

  conversation(additions: Omit<Additions, 'states'>): ModelMessage[] {
    const { compaction, turns, states } = this.#read();
    const all = { ...additions, states: new Map([...states, ...this.#states]) };
    return conversationOf(compaction, [...turns, this.#now()], all);
  }

  /** @param lastItemId the last item of the answer */
  addState(lastItemId: string, state: ModelState): void {
    this.#states.set(lastItemId, state);
  }

  /** Replaces everything up to an item by a summary. */
  summarise(compaction: Compaction): void {
    const { id: threadId, store, journal } = this.#turn.thread;
    journal.flush();
    store.putCompaction(threadId, compaction);
    this.#past = undefined;
  }

  /** Deletes the states of all answers. */
  dropStates(): void {
    const { id: threadId, store, journal } = this.#turn.thread;
    journal.flush();
    store.deleteAnswerStates(threadId);
    this.#past = undefined;
    this.#states.clear();
  }

  #now(): Pick<Turn, 'items'> {
    return { items: [...this.ownItems()] };
  }

  /** Read once: earlier turns do not change while this turn runs. */
  #read(): Past {
    const { thread, place } = this.#turn;
    const { threadId, turnId } = place;
    const { store } = thread;
    if (!this.#past) {
      const compaction = store.compaction(threadId);
      const turns = store.turnsSince(threadId, compaction).filter(({ id }) => id !== turnId);
      this.#past = { compaction, turns, states: store.answerStates(threadId, compaction) };
    }
    return this.#past;
  }
}
