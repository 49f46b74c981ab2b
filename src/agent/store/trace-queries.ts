import type { SQLInputValue } from 'node:sqlite';
import type { FoundText, TraceEvent, TraceSession, TraceTotals } from '../../protocol/index.ts';
import type { EventRange, SessionRange, TracePage, TraceReader } from '../thread-store.ts';
import { folded, parseColumn, type Row, type Rows } from './rows.ts';
import { searchTexts } from './texts.ts';
import { counters, facts } from './trace-counters.ts';
import { type Sieve, sieveOf } from './trace-filter.ts';

const sessionColumns = ['sessionKey', 'startedAt', 'lastActivityAt', ...facts, ...counters].join(', ');
const totals = ['sessionCount', ...counters];
const totalColumns = totals.join(', ');
const noTotals = Object.fromEntries(totals.map((name) => [name, 0]));

/** Searchable text of a session. The separator occurs in no field. */
const remembered = `sessionKey || char(31) || ifnull(displayName, '') || char(31) || ifnull(firstInput, '')`;

/** Events with the keys of their sessions; events of deleted sessions are left out. The join keeps the given order. */
const allEvents =
  'SELECT id, sessionKey, type, json FROM traceEvents CROSS JOIN traceSessions ON traceSessions.key = traceEvents.session';

/** Events that one query, and one call, test one by one: together they block the event loop for milliseconds. */
const rowsPerLook = 1_000;
const rowsPerCall = 20_000;

/** Places in the list of sessions that a reader remembers, for cursors whose session has been deleted. */
const rememberedPlaces = 10_000;

/** Place of a session in the list of sessions. */
interface ListPlace {
  readonly lastActivityAt: string;
  readonly key: number;
}

/** Reads traces in an open database. */
export class TraceQueries implements TraceReader {
  readonly #rows: Rows;
  /** Places of listed sessions by session key, the least recently listed first. */
  readonly #places = new Map<string, ListPlace>();

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  get newestId(): number {
    return Number(this.#rows.get("SELECT seq FROM sqlite_sequence WHERE name = 'traceEvents'")?.['seq'] ?? 0);
  }

  totals(): TraceTotals {
    return { ...noTotals, ...this.#rows.get(`SELECT ${totalColumns} FROM traceTotals`) } as unknown as TraceTotals;
  }

  texts(text: string, limit: number): readonly FoundText[] {
    return searchTexts(this.#rows, text, limit);
  }

  sessions({ limit, before, text = '', status }: SessionRange): readonly TraceSession[] {
    const conditions = ['1'];
    const values: SQLInputValue[] = [];
    if (before !== undefined) {
      const place = this.#placeOf(before);
      if (!place) return [];
      conditions.push('(lastActivityAt, key) < (?, ?)');
      values.push(place.lastActivityAt, place.key);
    }
    if (status === 'running') conditions.push("lastStatus = 'running'");
    if (status === 'failed') conditions.push('errorCount > 0');
    if (text !== '') {
      conditions.push(`instr(folded(${remembered}), ?) > 0`);
      values.push(folded(text));
    }
    const sql = `SELECT key, ${sessionColumns} FROM traceSessions WHERE ${conditions.join(' AND ')} ORDER BY lastActivityAt DESC, key DESC LIMIT ?`;
    return this.#rows.all(sql, ...values, Math.max(0, limit)).map(({ key, ...row }) => {
      const session = sessionOf(row);
      this.#rememberPlace(session.sessionKey, { lastActivityAt: session.lastActivityAt, key: Number(key) });
      return session;
    });
  }

  /** Present place of a session, or the last listed place of a deleted one. */
  #placeOf(sessionKey: string): ListPlace | undefined {
    const row = this.#rows.get('SELECT lastActivityAt, key FROM traceSessions WHERE sessionKey = ?', sessionKey);
    if (!row) return this.#places.get(sessionKey);
    return { lastActivityAt: String(row['lastActivityAt']), key: Number(row['key']) };
  }

  #rememberPlace(sessionKey: string, place: ListPlace): void {
    this.#places.delete(sessionKey);
    this.#places.set(sessionKey, place);
    const [oldest] = this.#places.keys();
    if (this.#places.size > rememberedPlaces && oldest !== undefined) this.#places.delete(oldest);
  }

  session(sessionKey: string): TraceSession | undefined {
    const row = this.#rows.get(`SELECT ${sessionColumns} FROM traceSessions WHERE sessionKey = ?`, sessionKey);
    return row && sessionOf(row);
  }

  /**
   * A filter for a tool, a turn or a text tests some thousand events and no more: then the page may hold fewer than `limit`,
   * even none, and still have a `next`.
   */
  events(sessionKey: string, range: EventRange): TracePage {
    const walk = this.#walk(sessionKey, range);
    const sieve = sieveOf(range);
    if (!walk) return { events: [], next: undefined };
    return sieve ? this.#search(walk, sieve) : this.#read(walk);
  }

  event(sessionKey: string, id: number): TraceEvent | undefined {
    const row = this.#rows.get(`${allEvents} WHERE id = ? AND sessionKey = ?`, id, sessionKey);
    return row && this.#event(row);
  }

  recent(limit: number, before = Number.MAX_SAFE_INTEGER): readonly TraceEvent[] {
    const sql = `${allEvents} WHERE id < ? ORDER BY id DESC LIMIT ?`;
    return this.#rows.all(sql, before, Math.max(0, limit)).map((row) => this.#event(row));
  }

  since(id: number, limit: number): readonly TraceEvent[] {
    const sql = `${allEvents} WHERE id > ? ORDER BY id LIMIT ?`;
    return this.#rows.all(sql, id, Math.max(0, limit)).map((row) => this.#event(row));
  }

  #walk(sessionKey: string, { after, limit, order = 'asc', types }: EventRange): Walk | undefined {
    const key = this.#rows.get('SELECT key FROM traceSessions WHERE sessionKey = ?', sessionKey)?.['key'];
    if (key === undefined) return undefined;
    const isDown = order === 'desc';
    return {
      sessionKey,
      where: `session = ? AND id ${isDown ? '<' : '>'} ?${types ? ' AND type IN (SELECT value FROM json_each(?))' : ''}`,
      order: `ORDER BY id${isDown ? ' DESC' : ''}`,
      values: (cursor) => [key, cursor, ...(types ? [JSON.stringify(types)] : [])],
      upTo: `id ${isDown ? '>=' : '<='} ?`,
      start: after ?? (isDown ? Number.MAX_SAFE_INTEGER : 0),
      limit: Math.max(0, limit),
    };
  }

  #read({ sessionKey, where, order, values, start, limit }: Walk): TracePage {
    const sql = `SELECT id, type, json FROM traceEvents WHERE ${where} ${order} LIMIT ?`;
    const rows = this.#rows.all(sql, ...values(start), limit + 1);
    const events = rows.slice(0, limit).map((row) => this.#event(row, sessionKey));
    return { events, next: rows.length > limit ? events.at(-1)?.id : undefined };
  }

  #search(walk: Walk, sieve: Sieve): TracePage {
    const events: TraceEvent[] = [];
    let cursor = walk.start;
    for (let looked = 0; looked < rowsPerCall; looked += rowsPerLook) {
      const { count, last } = this.#look(walk, cursor);
      for (const event of this.#sifted(walk, sieve, cursor, last)) {
        if (events.length >= walk.limit) return { events, next: events.at(-1)?.id };
        events.push(event);
      }
      if (count < rowsPerLook) return { events, next: undefined };
      cursor = last;
    }
    return { events, next: cursor };
  }

  /** Counts the next `rowsPerLook` events and finds the id of the last. */
  #look({ where, order, values }: Walk, cursor: number): { readonly count: number; readonly last: number } {
    const edge = order === 'ORDER BY id' ? 'max' : 'min';
    const row = this.#rows.get(
      `SELECT count(*) AS count, ${edge}(id) AS last FROM (SELECT id FROM traceEvents WHERE ${where} ${order} LIMIT ${rowsPerLook})`,
      ...values(cursor),
    );
    return { count: Number(row?.['count']), last: Number(row?.['last'] ?? cursor) };
  }

  #sifted({ sessionKey, where, order, upTo, values }: Walk, sieve: Sieve, from: number, to: number): TraceEvent[] {
    const sql = `SELECT id, type, json FROM traceEvents WHERE ${where} AND ${upTo} ${sieve.sql} ${order}`;
    return this.#rows
      .all(sql, ...values(from), to, ...sieve.values)
      .map((row) => this.#event(row, sessionKey))
      .filter(sieve.isMeant);
  }

  #event({ id, sessionKey, type, json }: Row, knownKey?: string): TraceEvent {
    const rest = parseColumn<Omit<TraceEvent, 'id' | 'sessionKey' | 'type'>>(json, this.#rows.file);
    return { id: Number(id), sessionKey: knownKey ?? String(sessionKey), type: type as TraceEvent['type'], ...rest };
  }
}

/** A way through the events of one session, in SQL. */
interface Walk {
  readonly sessionKey: string;
  readonly where: string;
  readonly order: string;
  /** Ends it at an id, that included. */
  readonly upTo: string;
  /** Values for `where`, from a cursor on. */
  readonly values: (cursor: number) => readonly SQLInputValue[];
  readonly start: number;
  readonly limit: number;
}

/** Leaves out unknown facts of a session. */
const sessionOf = (row: Row): TraceSession =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as unknown as TraceSession;
