import type { TurnState } from '../../../../machines/index.ts';
import type { InputPart, TokenUsage, Turn } from '../../../protocol/index.ts';
import type { ModelState } from '../../model.ts';
import { StorageError, type StoredTurn } from '../../thread-store.ts';
import { timestamp } from '../clock.ts';
import type { ThreadEvent } from '../feed.ts';
import type { JournalOwner } from '../journal.ts';
import type { TurnHost } from './host.ts';
import { type ItemWrite, TurnItems } from './items.ts';

export interface TurnRecordOptions {
  readonly host: TurnHost;
  readonly turnId: string;
  /** State of the turn's machine now. */
  readonly stateOf: () => TurnState;
  /** Called when a write failed; nothing of its batch was published. */
  readonly onStorageFailed: (message: string) => void;
}

/**
 * The stored and published turn: its row, its items and their events, each written before it is published. It accepts
 * nothing after `saveEnd` or `refuseWrites`, so that late output of a tool or a model is dropped.
 */
export class TurnRecord implements JournalOwner {
  readonly items: TurnItems;
  readonly #host: TurnHost;
  readonly #turnId: string;
  readonly #stateOf: () => TurnState;
  readonly #onStorageFailed: (message: string) => void;
  readonly #startedAt = timestamp();
  /** Text of growing items that is not written yet, by item id. */
  readonly #unwritten = new Map<string, string>();
  #completedAt: string | undefined;
  #isSealed = false;
  #isEndPublished = false;

  constructor({ host, turnId, stateOf, onStorageFailed }: TurnRecordOptions) {
    this.#host = host;
    this.#turnId = turnId;
    this.#stateOf = stateOf;
    this.#onStorageFailed = onStorageFailed;
    this.items = new TurnItems({
      turn: { threadId: host.threadId, id: turnId },
      firstNumber: host.store.nextItemNumber(host.threadId),
      publish: (write, event) => this.add(write, event),
      onCompleted: (item, durationMs) => host.tracer?.segment(host.threadId, item, durationMs),
    });
  }

  /** The turn with its items, growing ones included. Until its end is stored it counts as running: a crash could still change the end. */
  snapshot(): Turn {
    const row = this.#isEndPublished ? this.#row() : this.#runningRow();
    return { ...row, items: this.items.snapshot() };
  }

  /** Publishes and traces the start. @param input as given by the caller */
  publishStart(input: readonly InputPart[]): void {
    const { threadId, journal, publish, tracer, onChange } = this.#host;
    const turn = this.snapshot();
    tracer?.turnStarted(turn, input);
    onChange();
    journal.add(this, undefined, () => publish({ method: 'turn/started', params: { threadId, turn } }));
  }

  /** Publishes `event` after `write`. */
  add(write: ItemWrite, event: ThreadEvent | undefined): void {
    if (this.#isSealed) return;
    const { journal, publish } = this.#host;
    journal.add(this, write && this.#writing(write), event && (() => publish(event)));
  }

  /** Writes the opaque state of an answer, which clients are not shown, after its last item. */
  saveAnswerState(itemId: string, state: ModelState): void {
    const { journal, store, threadId } = this.#host;
    journal.add(this, () => store.putAnswerState(threadId, itemId, state), undefined);
  }

  /** Writes the present status. */
  saveStatus(): void {
    const { journal, store, onChange } = this.#host;
    journal.add(this, () => store.putTurn(this.#row()), undefined);
    onChange();
  }

  /** Writes the usage so far, in one commit with the answer before it: a kill loses no cost that was paid. */
  saveUsage(): void {
    if (this.#isSealed) return;
    const { journal, store } = this.#host;
    const write = () => {
      // The end of the turn, in the same commit, has the usage, too.
      if (!this.#isSealed) store.putTurn(this.#runningRow());
    };
    journal.add(this, write, undefined);
  }

  /** Completes the items and writes the end of the turn. @param onSaved called after the commit */
  saveEnd(onSaved: () => void): void {
    const { journal, store, touch } = this.#host;
    const completedAt = this.#complete();
    const write = () => {
      store.putTurn(this.#row());
      touch(completedAt);
    };
    journal.add(this, write, onSaved);
  }

  /** Drops everything from now on: the store fails, and the end of the turn reports it once. */
  refuseWrites(): void {
    this.#isSealed = true;
  }

  /** Publishes the end and releases the thread. @param isStored false: the thread stores the turn later */
  publishEnd(isStored: boolean): void {
    const { publish, tracer, onEnd } = this.#host;
    if (!isStored) this.#complete();
    this.#isEndPublished = true;
    const turn = this.snapshot();
    tracer?.turnEnded(turn);
    publish(this.#endEvent(turn));
    onEnd(turn, isStored);
  }

  onStorageFault(error: unknown): void {
    const isExpected = error instanceof StorageError;
    if (!isExpected) this.#host.onBug(error);
    this.#onStorageFailed(isExpected ? error.message : 'The turn could not be saved.');
  }

  /** Ends the items and the turn. Returns the time. */
  #complete(): string {
    this.items.closeAll();
    this.#isSealed = true;
    this.#completedAt = timestamp();
    return this.#completedAt;
  }

  #endEvent(turn: Turn): ThreadEvent {
    const { threadId } = turn;
    if (turn.status === 'failed') {
      const error = turn.error ?? { code: 'internalError', message: 'The turn failed.' };
      return { method: 'turn/failed', params: { threadId, turn, error } };
    }
    if (turn.status === 'cancelled') return { method: 'turn/cancelled', params: { threadId, turn } };
    return { method: 'turn/completed', params: { threadId, turn, tokenUsage: usageOf(this.#stateOf()) } };
  }

  #runningRow(): StoredTurn {
    const { completedAt: _, ...row } = this.#row({ ...this.#stateOf(), end: undefined });
    return row.status === 'waitingApproval' ? row : { ...row, status: 'running' };
  }

  #row(state = this.#stateOf()): StoredTurn {
    const tokenUsage = usageOf(state);
    return {
      id: this.#turnId,
      threadId: this.#host.threadId,
      startedAt: this.#startedAt,
      status: state.status,
      ...(this.#completedAt !== undefined && { completedAt: this.#completedAt }),
      ...(tokenUsage.totalTokens > 0 && { tokenUsage }),
      ...state.end,
    };
  }

  /** Pieces of one item within one turn of the event loop become one write. */
  #writing(write: NonNullable<ItemWrite>): (() => void) | undefined {
    const { store, threadId, journal } = this.#host;
    if ('put' in write) return () => store.putItem(threadId, write.put);
    if (!journal.keepsPieces) return undefined;
    const { append: itemId, text } = write;
    const waiting = this.#unwritten.get(itemId);
    this.#unwritten.set(itemId, (waiting ?? '') + text);
    if (waiting !== undefined) return undefined;
    return () => {
      store.appendItemText(threadId, itemId, this.#unwritten.get(itemId) ?? '');
      this.#unwritten.delete(itemId);
    };
  }
}

/** Usage in the words of the protocol. An unknown cost is left out. */
function usageOf({ tokens }: TurnState): TokenUsage {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, costUsd } = tokens;
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    ...(cachedInputTokens > 0 && { cachedInputTokens }),
    ...(reasoningTokens > 0 && { reasoningTokens }),
    ...(costUsd !== null && inputTokens + outputTokens > 0 && { costUsd }),
  };
}
