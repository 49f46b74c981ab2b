import { type Item, isRunningStatus, type QueuedInput, type Turn } from '../../protocol/index.ts';
import type { DelegatedSession } from '../delegate.ts';
import type { ModelState } from '../model.ts';
import type { Briefing, CompactedPart, Compaction, StoredThread, StoredTurn, ThreadStore } from '../thread-store.ts';
import type { TurnActorStore } from '../turn-actor-store.ts';
import type { Database } from './database.ts';
import { movedItem, noGrowingItem, noThread, noTurn } from './errors.ts';
import { canGrow, numberIn, withoutCompacted } from './items.ts';
import { TextIndex } from './text-index.ts';
import { ThreadQueries, threadKey } from './thread-queries.ts';
import { SqliteTurnActors } from './turn-actors.ts';

/** Turns of a thread by key. */
const turnsAfter = `SELECT thread, key, json FROM turns WHERE thread = ${threadKey} AND key > ?2 ORDER BY key`;

/** Threads in the database of a workspace. */
export class SqliteStore extends ThreadQueries implements ThreadStore {
  readonly #database: Database;
  readonly #texts: TextIndex;
  readonly #release: () => void;
  readonly turnActors: TurnActorStore;

  /** @param release called by `close`, because other users may share the database @param onFault called when the index of texts cannot be written */
  constructor(database: Database, release: () => void, onFault: (error: unknown) => void) {
    super(database);
    this.#database = database;
    this.#texts = new TextIndex(database, onFault);
    this.#release = release;
    this.turnActors = new SqliteTurnActors(database);
  }

  transaction(work: () => void, isFlushed?: boolean): void {
    this.#database.transaction(work, isFlushed);
  }

  putThread(thread: StoredThread): void {
    this.#database.run(
      `INSERT INTO threads (id, lastActiveAt, json) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET lastActiveAt = excluded.lastActiveAt, json = excluded.json`,
      thread.id,
      thread.lastActiveAt,
      JSON.stringify(thread),
    );
  }

  touchThread(threadId: string, lastActiveAt: string): void {
    this.#database.run(
      `UPDATE threads SET lastActiveAt = ?2, json = json_set(json, '$.lastActiveAt', ?2) WHERE id = ?1`,
      threadId,
      lastActiveAt,
    );
  }

  deleteThread(threadId: string): void {
    this.#database.run('DELETE FROM threads WHERE id = ?', threadId);
  }

  putTurn(turn: StoredTurn): void {
    const { changes } = this.#database.run(
      `INSERT INTO turns (thread, id, number, status, json) SELECT key, ?2, ?3, ?4, ?5 FROM threads WHERE id = ?1
       ON CONFLICT (thread, id) DO UPDATE SET status = excluded.status, json = excluded.json`,
      turn.threadId,
      turn.id,
      numberIn(turn.id),
      // The index of unfinished turns knows two statuses; the JSON has the exact one.
      turn.status === 'waitingQuota' ? 'running' : turn.status,
      JSON.stringify(turn),
    );
    if (changes === 0) throw noThread(turn.threadId);
    if (!isRunningStatus(turn.status)) this.#texts.turnEnded();
  }

  turn(threadId: string, turnId: string): StoredTurn | undefined {
    const row = this.#database.get(`SELECT json FROM turns WHERE thread = ${threadKey} AND id = ?2`, threadId, turnId);
    return row && this.parse<StoredTurn>(row);
  }

  nextTurnNumber(threadId: string): number {
    return Number(this.#database.get('SELECT nextTurn FROM threads WHERE id = ?', threadId)?.['nextTurn'] ?? 1);
  }

  nextItemNumber(threadId: string): number {
    return Number(this.#database.get('SELECT nextItem FROM threads WHERE id = ?', threadId)?.['nextItem'] ?? 1);
  }

  turnsSince(threadId: string, compaction: CompactedPart | undefined): readonly Turn[] {
    const rows = this.#database.all(turnsAfter, threadId, this.#startOf(threadId, compaction));
    return withoutCompacted(this.withItems(rows), compaction);
  }

  answerStates(threadId: string, compaction: CompactedPart | undefined): ReadonlyMap<string, ModelState> {
    const rows = this.#database.all(
      `SELECT items.id, answerStates.json FROM answerStates JOIN items ON items.key = answerStates.item
       WHERE items.thread = ${threadKey} AND items.turn > ?2`,
      threadId,
      this.#startOf(threadId, compaction),
    );
    return new Map(rows.map((row) => [String(row['id']), this.parse<ModelState>(row)]));
  }

  putAnswerState(threadId: string, itemId: string, state: ModelState): void {
    this.#database.run(
      `INSERT INTO answerStates (item, json) SELECT key, ?3 FROM items WHERE thread = ${threadKey} AND id = ?2
       ON CONFLICT (item) DO UPDATE SET json = excluded.json`,
      threadId,
      itemId,
      JSON.stringify(state),
    );
  }

  deleteAnswerStates(threadId: string): void {
    this.#database.run(
      `DELETE FROM answerStates WHERE item IN (SELECT key FROM items WHERE thread = ${threadKey})`,
      threadId,
    );
  }

  briefing(threadId: string): Briefing | undefined {
    const row = this.#database.get(`SELECT json FROM briefings WHERE thread = ${threadKey}`, threadId);
    return row && this.parse<Briefing>(row);
  }

  putBriefing(threadId: string, briefing: Briefing): void {
    this.#database.run(
      `INSERT INTO briefings (thread, json) SELECT key, ?2 FROM threads WHERE id = ?1
       ON CONFLICT (thread) DO UPDATE SET json = excluded.json`,
      threadId,
      JSON.stringify(briefing),
    );
  }

  agentSession(threadId: string): DelegatedSession | undefined {
    const row = this.#database.get(`SELECT json FROM agentSessions WHERE thread = ${threadKey}`, threadId);
    return row && this.parse<DelegatedSession>(row);
  }

  putAgentSession(threadId: string, session: DelegatedSession): void {
    this.#database.run(
      `INSERT INTO agentSessions (thread, json) SELECT key, ?2 FROM threads WHERE id = ?1
       ON CONFLICT (thread) DO UPDATE SET json = excluded.json`,
      threadId,
      JSON.stringify(session),
    );
  }

  threadCost(threadId: string): number {
    const row = this.#database.get(
      `SELECT total(json_extract(json, '$.tokenUsage.costUsd')) AS usd FROM turns
       WHERE thread = ${threadKey} AND status NOT IN ('running', 'waitingApproval')`,
      threadId,
    );
    return Number(row?.['usd'] ?? 0);
  }

  deleteLastTurns(threadId: string, count: number): void {
    this.#database.run(
      `DELETE FROM turns WHERE key IN (SELECT key FROM turns WHERE thread = ${threadKey} ORDER BY key DESC LIMIT ?2)`,
      threadId,
      Math.max(0, count),
    );
  }

  deleteTurns(threadId: string, turnIds: readonly string[]): void {
    const remove = `DELETE FROM turns WHERE thread = ${threadKey} AND id = ?2`;
    this.#database.together(() => {
      for (const turnId of turnIds) this.#database.run(remove, threadId, turnId);
    });
  }

  putItem(threadId: string, item: Item): void {
    const { changes } = this.#database.run(
      `INSERT INTO items (thread, turn, id, number, canGrow, json)
         SELECT thread, key, ?3, ?4, ?5, ?6 FROM turns WHERE thread = ${threadKey} AND id = ?2
       ON CONFLICT (thread, id) DO UPDATE SET canGrow = excluded.canGrow, json = excluded.json WHERE turn = excluded.turn`,
      threadId,
      item.turnId,
      item.id,
      numberIn(item.id),
      canGrow(item) ? 1 : 0,
      JSON.stringify(item),
    );
    if (changes > 0) return;
    throw this.turn(threadId, item.turnId) ? movedItem(threadId, item.id) : noTurn(threadId, item.turnId);
  }

  /** Stores pieces as JSON: a piece may end in the middle of a character, which SQLite's UTF-8 could not hold. */
  appendItemText(threadId: string, itemId: string, delta: string): void {
    const { changes } = this.#database.run(
      `INSERT INTO pieces (item, number, json)
         SELECT key, (SELECT ifnull(max(number), 0) + 1 FROM pieces WHERE item = items.key), ?3
         FROM items WHERE thread = ${threadKey} AND id = ?2 AND canGrow`,
      threadId,
      itemId,
      JSON.stringify(delta),
    );
    if (changes === 0) throw noGrowingItem(threadId, itemId);
  }

  putQueued(threadId: string, input: QueuedInput): void {
    const { changes } = this.#database.run(
      `INSERT INTO queued (thread, id, json) SELECT key, ?2, ?3 FROM threads WHERE id = ?1
       ON CONFLICT (thread, id) DO UPDATE SET json = excluded.json`,
      threadId,
      input.id,
      JSON.stringify(input),
    );
    if (changes === 0) throw noThread(threadId);
  }

  deleteQueued(threadId: string, queuedInputId: string): void {
    this.#database.run(`DELETE FROM queued WHERE thread = ${threadKey} AND id = ?2`, threadId, queuedInputId);
  }

  putGrant(threadId: string | null, scopeKey: string): void {
    if (threadId === null) {
      this.#database.run('INSERT OR IGNORE INTO grants (scope) VALUES (?)', scopeKey);
      return;
    }
    const { changes } = this.#database.run(
      'INSERT OR IGNORE INTO grants (thread, scope) SELECT key, ?2 FROM threads WHERE id = ?1',
      threadId,
      scopeKey,
    );
    if (changes === 0 && !this.thread(threadId)) throw noThread(threadId);
  }

  hasGrant(threadId: string, scopeKey: string): boolean {
    const sql = `SELECT 1 FROM grants WHERE scope = ?2 AND (thread IS NULL OR thread = ${threadKey})`;
    return this.#database.get(sql, threadId, scopeKey) !== undefined;
  }

  putCompaction(threadId: string, compaction: Compaction): void {
    const { changes } = this.#database.run(
      `INSERT INTO compactions (thread, throughTurn, json) SELECT thread, key, ?3 FROM turns WHERE thread = ${threadKey} AND id = ?2`,
      threadId,
      compaction.throughTurnId,
      JSON.stringify(compaction),
    );
    if (changes === 0) throw noTurn(threadId, compaction.throughTurnId);
  }

  compaction(threadId: string): Compaction | undefined {
    const row = this.#database.get(
      `SELECT json FROM compactions WHERE thread = ${threadKey} ORDER BY key DESC LIMIT 1`,
      threadId,
    );
    return row && this.parse<Compaction>(row);
  }

  unfinishedTurns(): readonly Turn[] {
    return this.#database
      .all(`SELECT thread, key, json FROM turns WHERE status IN ('running', 'waitingApproval') ORDER BY thread, key`)
      .flatMap((row) => this.withItems([row]));
  }

  close(): void {
    this.#texts.stop();
    this.#release();
  }

  /** Key before the first turn that a compaction does not cover whole. */
  #startOf(threadId: string, compaction: CompactedPart | undefined): number {
    const key = compaction && this.turnKey(threadId, compaction.throughTurnId);
    if (key === undefined) return 0;
    return compaction?.throughItemId === undefined ? key : key - 1;
  }
}
