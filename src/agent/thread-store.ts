import type {
  FoundText,
  Item,
  NewTraceEvent,
  QueuedInput,
  Thread,
  TraceEvent,
  TraceSession,
  TraceTotals,
  Turn,
} from '../protocol/index.ts';
import type { DelegatedSession } from './delegate.ts';
import type { ModelState } from './model.ts';
import type { TurnActorStore } from './turn-actor-store.ts';

/** A stored thread: without the fields that are stored beside it. */
export interface StoredThread
  extends Omit<Thread, 'firstInput' | 'turns' | 'hasOlderTurns' | 'queuedInputs' | 'contextUsage'> {
  /** Never listed nor reported: the thread lasts for one request. */
  readonly isTransient?: true | undefined;
}
/** A stored turn: its items are rows of their own. */
export type StoredTurn = Omit<Turn, 'items'>;

/** Range of turns: the newest, or the turns right before a given one; at most `limit`. The result is oldest first. */
export interface TurnRange {
  readonly limit: number;
  readonly before?: string | undefined;
}

/**
 * A summary that stands for all items up to and including those of `throughTurnId`; of that turn only up to `throughItemId`, where
 * it is given. The requests of users that it covers stay verbatim.
 */
export interface Compaction {
  readonly throughTurnId: string;
  readonly throughItemId?: string | undefined;
  readonly summary: string;
  /** Requests of users, oldest first: all of the turn that was cut, and as many older ones as are worth their room. */
  readonly requests?: readonly string[];
  readonly at: string;
}

/** Instructions of one file. */
export interface Instructions {
  /** Absolute for a file of the user, relative to the workspace for one of the project. */
  readonly path: string;
  readonly text: string;
  /** The file is longer than its budget. */
  readonly isCut: boolean;
}

/**
 * Facts that a thread starts with. They are stored with it and never change, so that the beginning of every request is the
 * same and the caches of providers find it.
 */
export interface Briefing {
  /** Local day, as 2026-11-23. */
  readonly day: string;
  /** Branch of git; absent: none. */
  readonly branch?: string | undefined;
  readonly instructions: readonly Instructions[];
  /** List of skills for the model; absent: none. */
  readonly skills?: string | undefined;
  /** List of types of sub-agents beside the built-in types; absent: none. */
  readonly agents?: string | undefined;
  /** Said by hooks at the start; absent: nothing. */
  readonly context?: string | undefined;
}

/** Part of a thread that a compaction covers. */
export type CompactedPart = Pick<Compaction, 'throughTurnId' | 'throughItemId'>;

/**
 * Store of threads. Synchronous: the database is in this process, and an answer must not overtake the state it reports.
 * Arguments and results are never changed afterwards. Every method but `transaction` may throw `StorageError`.
 */
export interface ThreadStore {
  /**
   * All of `work`'s writes or none, in one commit. Not nested.
   *
   * @param isFlushed the commit survives a power cut, too @throws StorageError when the disk does not take it
   */
  transaction(work: () => void, isFlushed?: boolean): void;
  /** Facts of unfinished turns. */
  readonly turnActors: TurnActorStore;

  /** Inserts or replaces. */
  putThread(thread: StoredThread): void;
  /** Records when a thread was last active, if it exists. */
  touchThread(threadId: string, lastActiveAt: string): void;
  thread(threadId: string): StoredThread | undefined;
  /** Most recently active first. */
  threads(): readonly StoredThread[];
  /** Deletes a thread with its turns, items, queue, grants and compactions. Traces are deleted by `TraceStore.deleteSession`. */
  deleteThread(threadId: string): void;

  /** Text of the first request of a thread, cut at `firstInputChars` and at a NUL, where SQLite ends a text; undefined before one. */
  firstInput(threadId: string): string | undefined;

  /** Inserts, or replaces the turn with the same id. */
  putTurn(turn: StoredTurn): void;
  turn(threadId: string, turnId: string): StoredTurn | undefined;
  turnCount(threadId: string): number;
  /** Whether the thread has more than one turn. */
  hasSeveralTurns(threadId: string): boolean;
  /** Number of the next turn id (`turn_001`): one more than the highest ever used in this thread, also after a rollback. */
  nextTurnNumber(threadId: string): number;
  /** Number of the next item of a thread. */
  nextItemNumber(threadId: string): number;
  /** Returns turns with their items. */
  turns(threadId: string, range: TurnRange): readonly Turn[];
  /**
   * All turns that a compaction does not cover (all without it), with their items, oldest first: the conversation for a model. The
   * turn that it covers in part has its later items only.
   */
  turnsSince(threadId: string, compaction: CompactedPart | undefined): readonly Turn[];
  /** States of the answers in these turns, by the last item of each answer. */
  answerStates(threadId: string, compaction: CompactedPart | undefined): ReadonlyMap<string, ModelState>;
  /** Saves the state of an answer with its last item, which must be stored. */
  putAnswerState(threadId: string, itemId: string, state: ModelState): void;
  /** Deletes the states of all answers. */
  deleteAnswerStates(threadId: string): void;
  /** Known cost of the thread's ended turns in US dollars. */
  threadCost(threadId: string): number;
  /** Takes back the last `count` turns. */
  deleteLastTurns(threadId: string, count: number): void;
  /** Takes back these turns; those that are missing already count as taken back. */
  deleteTurns(threadId: string, turnIds: readonly string[]): void;

  /** Inserts the item, or replaces the item with the same id, including the text that `appendItemText` added to it. */
  putItem(threadId: string, item: Item): void;
  /** Adds to the text of an item that is still growing (`text`, for a command `output`). Cheap: called per piece. */
  appendItemText(threadId: string, itemId: string, delta: string): void;

  queue(threadId: string): readonly QueuedInput[];
  putQueued(threadId: string, input: QueuedInput): void;
  deleteQueued(threadId: string, queuedInputId: string): void;

  /** `acceptForSession` (a thread) and `acceptAlways` (threadId null: the workspace). */
  putGrant(threadId: string | null, scopeKey: string): void;
  hasGrant(threadId: string, scopeKey: string): boolean;

  /** Undefined before the first turn. */
  briefing(threadId: string): Briefing | undefined;
  putBriefing(threadId: string, briefing: Briefing): void;

  /** Session of the thread at an external agent; a fork has no session of its own. */
  agentSession(threadId: string): DelegatedSession | undefined;
  putAgentSession(threadId: string, session: DelegatedSession): void;

  putCompaction(threadId: string, compaction: Compaction): void;
  /** The latest. */
  compaction(threadId: string): Compaction | undefined;

  /** Turns that a process which is no more left running or waiting. */
  unfinishedTurns(): readonly Turn[];
  close(): void;
}

/**
 * Page of trace events. `next` is the cursor of the following page. A page found by tool, turn or text may hold fewer than
 * `limit`, even none, and still have a `next`: one call tests a bounded number of events, so that it blocks no other work.
 */
export interface TracePage {
  readonly events: readonly TraceEvent[];
  readonly next: number | undefined;
}

/** Range of a session's events. */
export interface EventRange {
  /** Cursor: the last id of the page before. */
  readonly after?: number | undefined;
  readonly limit: number;
  /** `desc`: newest first, and `after` goes back in time. Default `asc`. */
  readonly order?: 'asc' | 'desc' | undefined;
  readonly types?: readonly string[] | undefined;
  readonly tool?: string | undefined;
  readonly turnId?: string | undefined;
  /** Found anywhere in the event's texts, in any case. */
  readonly text?: string | undefined;
}

/** Range of sessions, most recently active first. */
export interface SessionRange {
  readonly limit: number;
  /** Key of the last session of the page before. After its deletion, the list continues at its last listed place. */
  readonly before?: string | undefined;
  /** Text to find in keys, names and first inputs, in any case. */
  readonly text?: string | undefined;
  readonly status?: 'running' | 'failed' | undefined;
}

/** Reads traces. Changes nothing. */
export interface TraceReader {
  /** Totals of all sessions; the time does not grow with the number of events. */
  totals(): TraceTotals;
  sessions(range: SessionRange): readonly TraceSession[];
  session(sessionKey: string): TraceSession | undefined;
  events(sessionKey: string, range: EventRange): TracePage;
  event(sessionKey: string, id: number): TraceEvent | undefined;
  /** The newest of all sessions, newest first. */
  recent(limit: number, before?: number): readonly TraceEvent[];
  /** All sessions' events after an id, oldest first: for readers of the stream who were away. */
  since(id: number, limit: number): readonly TraceEvent[];
  /** Highest id so far; 0 without an event. */
  readonly newestId: number;
  /** Messages and answers of all conversations that contain the words of `text`, or words that begin with them, newest first. */
  texts(text: string, limit: number): readonly FoundText[];
}

/** Store of traces: in the same database, written in batches off the hot path. */
export interface TraceStore extends TraceReader {
  /** Buffers, and writes soon in one transaction (bounded; when the disk does not take it, the oldest are dropped and counted). */
  append(event: NewTraceEvent): void;
  /** Writes the buffered events now. */
  flush(): void;
  /** Calls `listener` with every stored event. Returns a function that ends this. */
  subscribe(listener: (events: readonly TraceEvent[]) => void): () => void;
  /** Number of events lost because the disk refused them. */
  readonly dropped: number;
  /** Out of sight at once; the disk gets its room back little by little. */
  deleteSession(sessionKey: string): boolean;
  /** All but `keep`. @returns how many */
  deleteAllSessions(keep?: readonly string[]): number;
  close(): void;
}

/** Error of a write that the disk refused, or of stored data that cannot be read. The message is for people. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
  /** `busy`: another program holds the database; a later try may succeed. */
  readonly code: 'busy' | 'diskFull' | 'readOnly' | 'corrupt' | 'failed';

  constructor(code: StorageError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
