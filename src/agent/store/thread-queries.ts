import type { Item, QueuedInput, Turn } from '../../protocol/index.ts';
import type { StoredThread, StoredTurn, TurnRange } from '../thread-store.ts';
import { firstInputOf, withText } from './items.ts';
import { joinPieces, parseColumn, type Row, type Rows } from './rows.ts';

export const threadKey = '(SELECT key FROM threads WHERE id = ?1)';

/** Turns of a thread by key, newest first. */
const turnsBefore = `SELECT thread, key, json FROM turns WHERE thread = ${threadKey} AND key < ?2 ORDER BY key DESC LIMIT ?3`;
const turnKey = `SELECT key FROM turns WHERE thread = ${threadKey} AND id = ?2`;

/** Items of the turns between two keys, each with the JSON texts appended to it. */
const itemsBetween = `
  SELECT turn, json, canGrow,
    CASE WHEN canGrow THEN (SELECT group_concat(p.json, ',' ORDER BY p.number) FROM pieces p WHERE p.item = items.key) END AS pieces
  FROM items WHERE thread = ? AND turn BETWEEN ? AND ? ORDER BY turn, key`;

/** Reads threads in an open database. */
export class ThreadQueries {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  thread(threadId: string): StoredThread | undefined {
    const row = this.#rows.get('SELECT json FROM threads WHERE id = ?', threadId);
    return row && this.parse<StoredThread>(row);
  }

  threads(): readonly StoredThread[] {
    return this.parseAll('SELECT json FROM threads ORDER BY lastActiveAt DESC, key DESC');
  }

  firstInput(threadId: string): string | undefined {
    const row = this.#rows.get(`SELECT ${firstInputOf(threadKey)} AS text`, threadId);
    const text = row?.['text'] ?? null;
    return text === null ? undefined : String(text);
  }

  turnCount(threadId: string): number {
    const row = this.#rows.get(`SELECT count(*) AS count FROM turns WHERE thread = ${threadKey}`, threadId);
    return Number(row?.['count']);
  }

  hasSeveralTurns(threadId: string): boolean {
    const second = `SELECT 1 FROM turns WHERE thread = ${threadKey} LIMIT 1 OFFSET 1`;
    return this.#rows.get(second, threadId) !== undefined;
  }

  turns(threadId: string, { limit, before }: TurnRange): readonly Turn[] {
    const end = before === undefined ? Number.MAX_SAFE_INTEGER : this.turnKey(threadId, before);
    if (end === undefined) return [];
    return this.withItems(this.#rows.all(turnsBefore, threadId, end, Math.max(0, limit)).toReversed());
  }

  queue(threadId: string): readonly QueuedInput[] {
    return this.parseAll(`SELECT json FROM queued WHERE thread = ${threadKey} ORDER BY key`, threadId);
  }

  protected turnKey(threadId: string, turnId: string): number | undefined {
    const row = this.#rows.get(turnKey, threadId, turnId);
    return row && Number(row['key']);
  }

  /** @param rows turns of one thread, oldest first */
  protected withItems(rows: readonly Row[]): readonly Turn[] {
    const first = rows[0];
    const last = rows.at(-1);
    if (!first || !last) return [];
    const items = new Map<unknown, Item[]>(rows.map(({ key }) => [key, []]));
    for (const row of this.#rows.all(
      itemsBetween,
      first['thread'] ?? null,
      first['key'] ?? null,
      last['key'] ?? null,
    )) {
      items.get(row['turn'])?.push(this.#item(row));
    }
    return rows.map((row) => ({ ...this.parse<StoredTurn>(row), items: items.get(row['key']) ?? [] }));
  }

  #item(row: Row): Item {
    const item = this.parse<Item>(row);
    const { pieces } = row;
    if (typeof pieces !== 'string') return item;
    return withText(item, joinPieces(pieces, this.#rows.file));
  }

  protected parse<T>(row: Row): T {
    return parseColumn<T>(row['json'], this.#rows.file);
  }

  protected parseAll<T>(sql: string, ...values: string[]): readonly T[] {
    return this.#rows.all(sql, ...values).map((row) => this.parse<T>(row));
  }
}
