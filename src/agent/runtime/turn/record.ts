import type { TurnState } from '../../../../machines/index.ts';
import { type InputPart, isRunningStatus, type TokenUsage, type Turn } from '../../../protocol/index.ts';
import type { ModelState } from '../../model.ts';
import { StorageError, type StoredTurn } from '../../thread-store.ts';
import type { StartedCall } from '../../turn-actor-store.ts';
import { timestamp } from '../clock.ts';
import type { Listener, ThreadEvent } from '../feed.ts';
import type { JournalOwner } from '../journal.ts';
import type { RuntimeServices } from '../services.ts';
import type { ResumedTurn } from './facts.ts';
import { TurnItems } from './items.ts';
import type { TurnThread } from './thread.ts';

export interface TurnRecordOptions {
  readonly services: RuntimeServices;
  readonly thread: TurnThread;
  readonly turnId: string;
  /** State of the turn's machine now. */
  readonly stateOf: () => TurnState;
  /** Called when a write failed; nothing of its batch was published. */
  readonly onStorageFailed: (message: string) => void;
  /** Facts for the next process; undefined: the turn ends with this process. */
  readonly facts: SavableFacts | undefined;
  /** Saved state of a resumed turn; absent: the turn began in this process. */
  readonly resumed?: ResumedTurn | undefined;
}

/** Facts as JSON; undefined: none. */
export interface SavableFacts {
  readonly text: () => string | undefined;
  /** Long options of the caller, which never change. */
  readonly request: () => string | undefined;
}

/**
 * The stored and published turn: its row, its items and their events, each written before it is published. It accepts
 * nothing after `saveEnd` or `refuseWrites`, so that late output of a tool or a model is dropped.
 */
export class TurnRecord implements JournalOwner {
  readonly threadId: string;
  readonly asker: Listener | undefined;
  readonly items: TurnItems;
  readonly #services: RuntimeServices;
  readonly #thread: TurnThread;
  readonly #turnId: string;
  readonly #stateOf: () => TurnState;
  readonly #onStorageFailed: (message: string) => void;
  readonly #facts: SavableFacts | undefined;
  /** The store has the long options of the caller. */
  #hasRequest = false;
  readonly #startedAt: string;
  /** Time without an agent server, in milliseconds. */
  readonly #awayMs: number;
  /** Times that the turn continued after its agent server had ended. */
  readonly resumes: number;
  /** Changes of the facts so far, and those that a commit has. */
  #changes = 0;
  #joined = 0;
  #committed = 0;
  #completedAt: string | undefined;
  #isEndPublished = false;

  constructor({ services, thread, turnId, stateOf, onStorageFailed, facts, resumed }: TurnRecordOptions) {
    const { id: threadId, asker, store, journal } = thread;
    this.threadId = threadId;
    this.asker = asker;
    this.#services = services;
    this.#thread = thread;
    this.#turnId = turnId;
    this.#stateOf = stateOf;
    this.#onStorageFailed = onStorageFailed;
    this.#facts = facts;
    this.#startedAt = resumed?.turn.startedAt ?? timestamp();
    this.#awayMs = resumed?.awayMs ?? 0;
    this.resumes = resumed ? (resumed.turn.resumes ?? 0) + 1 : 0;
    this.items = new TurnItems({
      ...{ place: { threadId, turnId }, store, journal, owner: this, stored: resumed?.turn.items },
      onCompleted: (item, durationMs) => services.tracer?.segment(threadId, item, durationMs),
    });
  }

  /** The turn with its items, growing ones included. Until its end is stored it counts as running: a crash could still change the end. */
  snapshot(): Turn {
    const row = this.#isEndPublished ? this.#row() : this.#runningRow();
    return { ...row, items: this.items.snapshot() };
  }

  /** Publishes and traces the start. @param input as given by the caller */
  publishStart(input: readonly InputPart[]): void {
    const { threadId } = this;
    const { journal, onChange } = this.#thread;
    const turn = this.snapshot();
    this.#services.tracer?.turnStarted(turn, input);
    onChange(input);
    journal.add(this, undefined, { method: 'turn/started', params: { threadId, turn } });
  }

  /** Publishes an event of the turn after its earlier writes. */
  publish(event: ThreadEvent): void {
    this.items.publish(event);
  }

  /** Writes the opaque state of an answer, which clients are not shown, after its last item. */
  saveAnswerState(itemId: string, state: ModelState): void {
    const { journal, store } = this.#thread;
    journal.add(this, () => store.putAnswerState(this.threadId, itemId, state), undefined);
  }

  /** The facts have changed: the next commit of the turn saves them. */
  noteChange(): void {
    this.#changes += 1;
  }

  /** Saves the facts, with everything before. */
  saveFacts(): void {
    this.noteChange();
    if (!this.items.isSealed) this.#thread.journal.add(this, () => undefined, undefined);
  }

  /** Saves the facts at once. Resolves when a power cut cannot lose them. */
  secureFacts(): Promise<void> {
    this.noteChange();
    return this.#thread.journal.secure(this, () => undefined);
  }

  joinCommit(): void {
    this.#joined = this.#changes;
    if (this.#joined === this.#committed || this.items.isSealed) return;
    this.putFacts();
  }

  onCommitted(): void {
    this.#committed = this.#joined;
  }

  /** Saves the facts of a turn in the present transaction. */
  putFacts(): void {
    if (!this.#facts) return;
    const { store } = this.#thread;
    const facts = this.#facts.text();
    if (facts === undefined) store.turnActors.delete(this.threadId, this.#turnId);
    else store.turnActors.put(this.threadId, this.#turnId, facts, this.#hasRequest ? undefined : this.#facts.request());
    this.#hasRequest = facts !== undefined;
  }

  /** Saves that a call with effects starts. Resolves when a power cut cannot lose it. */
  saveCall(callId: string, call: StartedCall): Promise<void> {
    const { journal, store } = this.#thread;
    return journal.secure(this, () => store.turnActors.putCall(this.threadId, this.#turnId, callId, call));
  }

  /** Saves that the tool of a started call has returned, with the next commit. */
  saveCallEnd(callId: string, call: StartedCall): void {
    if (this.items.isSealed) return;
    const { journal, store } = this.#thread;
    journal.add(this, () => store.turnActors.putCall(this.threadId, this.#turnId, callId, call), undefined);
  }

  /** Calls `work` after the commit of the earlier writes; never, when the turn accepts no more writes. */
  afterCommit(work: () => void): void {
    if (!this.items.isSealed) this.#thread.journal.add(this, () => undefined, undefined, work);
  }

  /** Writes the present status. */
  saveStatus(): void {
    const { journal, store, onChange } = this.#thread;
    journal.add(this, () => store.putTurn(this.#row()), undefined);
    onChange();
  }

  /** Writes the usage so far, in one commit with the answer before it: a kill loses no cost that was paid. */
  saveUsage(): void {
    if (this.items.isSealed) return;
    const { journal, store } = this.#thread;
    const write = () => {
      // The end of the turn, in the same commit, has the usage, too.
      if (!this.items.isSealed) store.putTurn(this.#runningRow());
    };
    journal.add(this, write, undefined);
  }

  /** Completes the items and writes the end of the turn. @param onSaved called after the commit */
  saveEnd(onSaved: () => void): void {
    const { journal, store } = this.#thread;
    const completedAt = this.#complete();
    const write = () => {
      store.putTurn(this.#row());
      if (this.#facts) store.turnActors.delete(this.threadId, this.#turnId);
      store.touchThread(this.threadId, completedAt);
    };
    journal.add(this, write, undefined, onSaved);
  }

  /** Saves the facts for the next process, publishes that, and accepts nothing more. */
  suspend(reason: string): void {
    const { threadId } = this;
    const about = { threadId, turnId: this.#turnId };
    this.items.closeAll('unknown');
    const message = 'The agent server ends. The turn continues with the next one.';
    this.saveFacts();
    this.publish({ method: 'system/event', params: { ...about, kind: 'turnSuspended', message, reason } });
    this.#services.tracer?.turnSuspended(about, reason);
    this.#thread.journal.flush();
    this.items.seal();
  }

  /** Drops everything from now on: the store fails, and the end of the turn reports it once. */
  refuseWrites(): void {
    this.items.seal();
  }

  /** Publishes the end and releases the thread. @param isStored false: the thread stores the turn later */
  publishEnd(isStored: boolean): void {
    const { feed, tracer } = this.#services;
    if (!isStored) this.#complete();
    this.#isEndPublished = true;
    const turn = this.snapshot();
    tracer?.turnEnded(turn, this.#awayMs);
    feed.publish(this.threadId, this.#endEvent(turn), this.asker);
    this.#thread.onEnd(turn, isStored);
  }

  onStorageFault(error: unknown): void {
    const isExpected = error instanceof StorageError;
    if (!isExpected) this.#services.onBug(error);
    this.#onStorageFailed(isExpected ? error.message : 'The turn could not be saved.');
  }

  /** Ends the items and the turn. Returns the time. */
  #complete(): string {
    this.items.closeAll('cancelled');
    this.items.seal();
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
    return isRunningStatus(row.status) ? row : { ...row, status: 'running' };
  }

  #row(state = this.#stateOf()): StoredTurn {
    const tokenUsage = usageOf(state);
    return {
      id: this.#turnId,
      threadId: this.threadId,
      startedAt: this.#startedAt,
      status: state.status,
      ...(this.resumes > 0 && { resumes: this.resumes }),
      ...(this.#completedAt !== undefined && { completedAt: this.#completedAt }),
      ...(tokenUsage.totalTokens > 0 && { tokenUsage }),
      ...state.end,
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
