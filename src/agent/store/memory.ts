import { type Item, isRunningStatus, type QueuedInput, type Turn, writtenIn } from '../../protocol/index.ts';
import type { DelegatedSession } from '../delegate.ts';
import type { ModelState } from '../model.ts';
import type {
  Briefing,
  CompactedPart,
  Compaction,
  StoredThread,
  StoredTurn,
  ThreadStore,
  TurnRange,
} from '../thread-store.ts';
import { movedItem, noGrowingItem, noThread, noTurn } from './errors.ts';
import { canGrow, firstInputChars, numberIn, withoutCompacted, withText } from './items.ts';
import { noTurnActors } from './turn-actors.ts';

/** A thread and all that belongs to it. Maps keep the order in which things were first put. */
interface ThreadRecord {
  readonly order: number;
  readonly turns: Map<string, StoredTurn>;
  readonly items: Map<string, Item>;
  readonly queue: Map<string, QueuedInput>;
  readonly grants: Set<string>;
  /** States of answers by their last items. */
  readonly states: Map<string, ModelState>;
  briefing: Briefing | undefined;
  agentSession: DelegatedSession | undefined;
  thread: StoredThread;
  compactions: readonly Compaction[];
  nextTurn: number;
  nextItem: number;
}

/** State to which a failed transaction returns: the records that it has replaced, undefined for new ones, and the grants. */
interface Savepoint {
  readonly threads: Map<string, ThreadRecord | undefined>;
  readonly grants: string[];
}

/** Threads that last as long as the process. Behaves as `SqliteStore` does, and is meant for few and short threads. */
export class MemoryStore implements ThreadStore {
  readonly #threads = new Map<string, ThreadRecord>();
  readonly #grants = new Set<string>();
  #created = 0;
  #savepoint: Savepoint | undefined;
  readonly turnActors = noTurnActors;

  transaction(work: () => void): void {
    if (this.#savepoint) throw new Error('A transaction cannot begin inside of another');
    const savepoint: Savepoint = { threads: new Map(), grants: [] };
    this.#savepoint = savepoint;
    try {
      work();
    } catch (error) {
      this.#rollback(savepoint);
      throw error;
    } finally {
      this.#savepoint = undefined;
    }
  }

  putThread(thread: StoredThread): void {
    if (this.#threads.has(thread.id)) {
      this.#change(thread.id).thread = thread;
      return;
    }
    this.#created += 1;
    const record: ThreadRecord = {
      order: this.#created,
      thread,
      turns: new Map(),
      items: new Map(),
      queue: new Map(),
      grants: new Set(),
      states: new Map(),
      briefing: undefined,
      agentSession: undefined,
      compactions: [],
      nextTurn: 1,
      nextItem: 1,
    };
    this.#replace(thread.id, record);
  }

  touchThread(threadId: string, lastActiveAt: string): void {
    const thread = this.thread(threadId);
    if (thread) this.#change(threadId).thread = { ...thread, lastActiveAt };
  }

  thread(threadId: string): StoredThread | undefined {
    return this.#threads.get(threadId)?.thread;
  }

  threads(): readonly StoredThread[] {
    return [...this.#threads.values()].sort(byActivity).map(({ thread }) => thread);
  }

  firstInput(threadId: string): string | undefined {
    const items = this.turns(threadId, { limit: Number.POSITIVE_INFINITY }).flatMap((turn) => turn.items);
    const first = items.find((item) => item.type === 'userMessage');
    const isWritten = first?.input.some(({ type }) => type === 'text' || type === 'commandRef');
    return first && isWritten ? writtenIn(first.input).slice(0, firstInputChars).split('\0', 1)[0] : undefined;
  }

  deleteThread(threadId: string): void {
    this.#replace(threadId, undefined);
  }

  putTurn(turn: StoredTurn): void {
    const record = this.#change(turn.threadId);
    record.turns.set(turn.id, turn);
    record.nextTurn = Math.max(record.nextTurn, numberIn(turn.id) + 1);
  }

  turn(threadId: string, turnId: string): StoredTurn | undefined {
    return this.#threads.get(threadId)?.turns.get(turnId);
  }

  turnCount(threadId: string): number {
    return this.#threads.get(threadId)?.turns.size ?? 0;
  }

  hasSeveralTurns(threadId: string): boolean {
    return this.turnCount(threadId) > 1;
  }

  nextTurnNumber(threadId: string): number {
    return this.#threads.get(threadId)?.nextTurn ?? 1;
  }

  nextItemNumber(threadId: string): number {
    return this.#threads.get(threadId)?.nextItem ?? 1;
  }

  turns(threadId: string, { limit, before }: TurnRange): readonly Turn[] {
    const record = this.#threads.get(threadId);
    const turns = [...(record?.turns.values() ?? [])];
    const end =
      before === undefined
        ? turns.length
        : Math.max(
            0,
            turns.findIndex(({ id }) => id === before),
          );
    return withItems(record, turns.slice(Math.max(0, end - limit), end));
  }

  turnsSince(threadId: string, compaction: CompactedPart | undefined): readonly Turn[] {
    const record = this.#threads.get(threadId);
    const turns = [...(record?.turns.values() ?? [])];
    const last = turns.findIndex(({ id }) => id === compaction?.throughTurnId);
    const isPart = last >= 0 && compaction?.throughItemId !== undefined;
    return withoutCompacted(withItems(record, turns.slice(isPart ? last : last + 1)), compaction);
  }

  answerStates(threadId: string): ReadonlyMap<string, ModelState> {
    return new Map(this.#threads.get(threadId)?.states);
  }

  putAnswerState(threadId: string, itemId: string, state: ModelState): void {
    if (this.#threads.get(threadId)?.items.has(itemId)) this.#change(threadId).states.set(itemId, state);
  }

  briefing(threadId: string): Briefing | undefined {
    return this.#threads.get(threadId)?.briefing;
  }

  putBriefing(threadId: string, briefing: Briefing): void {
    if (this.#threads.has(threadId)) this.#change(threadId).briefing = briefing;
  }

  agentSession(threadId: string): DelegatedSession | undefined {
    return this.#threads.get(threadId)?.agentSession;
  }

  putAgentSession(threadId: string, session: DelegatedSession): void {
    if (this.#threads.has(threadId)) this.#change(threadId).agentSession = session;
  }

  deleteAnswerStates(threadId: string): void {
    if (this.#threads.has(threadId)) this.#change(threadId).states.clear();
  }

  threadCost(threadId: string): number {
    const turns = [...(this.#threads.get(threadId)?.turns.values() ?? [])].filter((turn) => !isUnfinished(turn));
    return turns.reduce((sum, { tokenUsage }) => sum + (tokenUsage?.costUsd ?? 0), 0);
  }

  deleteLastTurns(threadId: string, count: number): void {
    const ids = [...(this.#threads.get(threadId)?.turns.keys() ?? [])];
    this.deleteTurns(threadId, ids.slice(Math.max(0, ids.length - Math.max(0, count))));
  }

  deleteTurns(threadId: string, turnIds: readonly string[]): void {
    if (!this.#threads.has(threadId)) return;
    const record = this.#change(threadId);
    for (const id of turnIds) record.turns.delete(id);
    for (const item of record.items.values()) {
      if (record.turns.has(item.turnId)) continue;
      record.items.delete(item.id);
      record.states.delete(item.id);
    }
    record.compactions = record.compactions.filter(({ throughTurnId }) => record.turns.has(throughTurnId));
  }

  putItem(threadId: string, item: Item): void {
    if (!this.turn(threadId, item.turnId)) throw noTurn(threadId, item.turnId);
    const record = this.#change(threadId);
    const known = record.items.get(item.id);
    if (known && known.turnId !== item.turnId) throw movedItem(threadId, item.id);
    record.items.set(item.id, item);
    record.nextItem = Math.max(record.nextItem, numberIn(item.id) + 1);
  }

  appendItemText(threadId: string, itemId: string, delta: string): void {
    const item = this.#threads.get(threadId)?.items.get(itemId);
    if (!item || !canGrow(item)) throw noGrowingItem(threadId, itemId);
    this.#change(threadId).items.set(itemId, withText(item, delta));
  }

  queue(threadId: string): readonly QueuedInput[] {
    return [...(this.#threads.get(threadId)?.queue.values() ?? [])];
  }

  putQueued(threadId: string, input: QueuedInput): void {
    this.#change(threadId).queue.set(input.id, input);
  }

  deleteQueued(threadId: string, queuedInputId: string): void {
    if (this.#threads.has(threadId)) this.#change(threadId).queue.delete(queuedInputId);
  }

  putGrant(threadId: string | null, scopeKey: string): void {
    if (threadId !== null) this.#change(threadId).grants.add(scopeKey);
    else if (!this.#grants.has(scopeKey)) {
      this.#savepoint?.grants.push(scopeKey);
      this.#grants.add(scopeKey);
    }
  }

  hasGrant(threadId: string, scopeKey: string): boolean {
    return this.#grants.has(scopeKey) || this.#threads.get(threadId)?.grants.has(scopeKey) === true;
  }

  putCompaction(threadId: string, compaction: Compaction): void {
    if (!this.turn(threadId, compaction.throughTurnId)) throw noTurn(threadId, compaction.throughTurnId);
    const record = this.#change(threadId);
    record.compactions = [...record.compactions, compaction];
  }

  compaction(threadId: string): Compaction | undefined {
    return this.#threads.get(threadId)?.compactions.at(-1);
  }

  unfinishedTurns(): readonly Turn[] {
    return [...this.#threads.values()]
      .sort((a, b) => a.order - b.order)
      .flatMap((record) => withItems(record, [...record.turns.values()].filter(isUnfinished)));
  }

  /** Forgets everything. */
  close(): void {
    this.#threads.clear();
    this.#grants.clear();
  }

  /** The record to write to: inside of a transaction a copy of the one that a failure returns to. */
  #change(threadId: string): ThreadRecord {
    const record = this.#threads.get(threadId);
    if (!record) throw noThread(threadId);
    if (!this.#savepoint || this.#savepoint.threads.has(threadId)) return record;
    const copy = {
      ...record,
      turns: new Map(record.turns),
      items: new Map(record.items),
      queue: new Map(record.queue),
      grants: new Set(record.grants),
      states: new Map(record.states),
      briefing: record.briefing,
    };
    this.#replace(threadId, copy);
    return copy;
  }

  #replace(threadId: string, record: ThreadRecord | undefined): void {
    const replaced = this.#savepoint?.threads;
    if (replaced && !replaced.has(threadId)) replaced.set(threadId, this.#threads.get(threadId));
    if (record) this.#threads.set(threadId, record);
    else this.#threads.delete(threadId);
  }

  #rollback({ threads, grants }: Savepoint): void {
    this.#savepoint = undefined;
    for (const [threadId, record] of threads) this.#replace(threadId, record);
    for (const scopeKey of grants) this.#grants.delete(scopeKey);
  }
}

const isUnfinished = ({ status }: StoredTurn): boolean => isRunningStatus(status);

/** Orders threads, most recently active first; at equal times, the newest first. */
function byActivity(a: ThreadRecord, b: ThreadRecord): number {
  if (a.thread.lastActiveAt === b.thread.lastActiveAt) return b.order - a.order;
  return a.thread.lastActiveAt < b.thread.lastActiveAt ? 1 : -1;
}

function withItems(record: ThreadRecord | undefined, turns: readonly StoredTurn[]): readonly Turn[] {
  const items = new Map<string, Item[]>(turns.map(({ id }) => [id, []]));
  for (const item of record?.items.values() ?? []) items.get(item.turnId)?.push(item);
  return turns.map((turn) => ({ ...turn, items: items.get(turn.id) ?? [] }));
}
