import type { NewTraceEvent, TraceEvent, TraceSession } from '../../protocol/index.ts';
import type { TracePage } from '../thread-store.ts';
import type { Database, Row } from './database.ts';
import { parseColumn } from './rows.ts';
import { counters, SessionChange } from './trace-counters.ts';

/** An event that waits to be written, and its JSON text without what is in columns. */
export interface PendingEvent {
  readonly event: NewTraceEvent;
  readonly json: string;
}

/**
 * Events of one INSERT: most of what a statement costs is paid once for all of them. OR ROLLBACK: a statement that fails
 * fails the transaction, so SQLite need not note how to take back half of one.
 */
const rowsPerInsert = 20;
const insertOf = (rows: number): string =>
  `INSERT OR ROLLBACK INTO traceEvents (session, type, json) VALUES ${Array(rows).fill('(?, ?, ?)').join(', ')}`;
const insertOne = insertOf(1);
const insertMany = insertOf(rowsPerInsert);

const upsertSession = `
  INSERT INTO traceSessions (sessionKey, startedAt, lastActivityAt, displayName, channelName, ${counters.join(', ')})
  VALUES (?, ?, ?, ?, ?, ${counters.map(() => '?').join(', ')})
  ON CONFLICT (sessionKey) DO UPDATE SET
    startedAt = min(startedAt, excluded.startedAt),
    lastActivityAt = max(lastActivityAt, excluded.lastActivityAt),
    displayName = ifnull(excluded.displayName, displayName),
    channelName = ifnull(excluded.channelName, channelName),
    ${counters.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}
  RETURNING key`;

const sessionColumns = `sessionKey, startedAt, lastActivityAt, displayName, channelName, ${counters.join(', ')}`;
const eventsAfter = `
  SELECT id, type, json FROM traceEvents
  WHERE session = (SELECT key FROM traceSessions WHERE sessionKey = ?1) AND id > ?2`;

/** The rows of traces. Knows nothing of when they are written. */
export class TraceTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Writes the events in order, in one transaction, and counts them. @returns them with their ids */
  insert(pending: readonly PendingEvent[]): readonly TraceEvent[] {
    return this.#database.transaction(() => {
      const keys = this.#countIn(pending);
      const stored: TraceEvent[] = [];
      for (let at = 0; at < pending.length; ) {
        const rows = pending.length - at >= rowsPerInsert ? rowsPerInsert : 1;
        const some = pending.slice(at, at + rows);
        const values = some.flatMap(({ event, json }) => [keys.get(event.sessionKey) ?? null, event.type, json]);
        const { lastKey } = this.#database.run(rows === 1 ? insertOne : insertMany, ...values);
        for (const { event } of some) stored.push({ id: lastKey - rows + 1 + (stored.length - at), ...event });
        at += rows;
      }
      return stored;
    });
  }

  /** @param range before: key of a session; those after it in the list */
  sessions({
    limit,
    before,
  }: {
    readonly limit: number;
    readonly before?: string | undefined;
  }): readonly TraceSession[] {
    const most = Math.max(0, limit);
    const order = 'ORDER BY lastActivityAt DESC, key DESC LIMIT ?';
    const rows =
      before === undefined
        ? this.#database.all(`SELECT ${sessionColumns} FROM traceSessions ${order}`, most)
        : this.#database.all(
            `SELECT ${sessionColumns} FROM traceSessions
             WHERE (lastActivityAt, key) < (SELECT lastActivityAt, key FROM traceSessions WHERE sessionKey = ?) ${order}`,
            before,
            most,
          );
    return rows.map(sessionOf);
  }

  session(sessionKey: string): TraceSession | undefined {
    const row = this.#database.get(`SELECT ${sessionColumns} FROM traceSessions WHERE sessionKey = ?`, sessionKey);
    return row && sessionOf(row);
  }

  events(
    sessionKey: string,
    {
      after = 0,
      limit,
      types,
    }: { readonly after?: number | undefined; readonly limit: number; readonly types?: readonly string[] | undefined },
  ): TracePage {
    const most = Math.max(0, limit);
    const values = [sessionKey, after, most + 1];
    const rows = types
      ? this.#database.all(
          `${eventsAfter} AND type IN (SELECT value FROM json_each(?4)) ORDER BY id LIMIT ?3`,
          ...values,
          JSON.stringify(types),
        )
      : this.#database.all(`${eventsAfter} ORDER BY id LIMIT ?3`, ...values);
    const events = rows.slice(0, most).map((row) => this.#event(sessionKey, row));
    return { events, next: rows.length > most ? events.at(-1)?.id : undefined };
  }

  /** Its events are out of sight at once, and off the disk when `sweep` was there. */
  deleteSession(sessionKey: string): boolean {
    const row = this.#database.get('SELECT key FROM traceSessions WHERE sessionKey = ?', sessionKey);
    if (!row) return false;
    const key = Number(row['key']);
    this.#database.together(() => {
      this.#database.run('INSERT INTO traceRemains (session) VALUES (?)', key);
      this.#database.run('DELETE FROM traceSessions WHERE key = ?', key);
    });
    return true;
  }

  /** SQLite empties a table that nothing refers to without looking at its rows. */
  deleteAllSessions(): number {
    return this.#database.together(() => {
      this.#database.run('DELETE FROM traceEvents');
      this.#database.run('DELETE FROM traceRemains');
      return this.#database.run('DELETE FROM traceSessions').changes;
    });
  }

  /** Takes away at most `limit` events of deleted sessions. @returns whether there may be more */
  sweep(limit: number): boolean {
    const row = this.#database.get('SELECT session FROM traceRemains LIMIT 1');
    if (!row) return false;
    const key = Number(row['session']);
    const { changes } = this.#database.run(
      'DELETE FROM traceEvents WHERE id IN (SELECT id FROM traceEvents WHERE session = ? LIMIT ?)',
      key,
      limit,
    );
    if (changes < limit) this.#database.run('DELETE FROM traceRemains WHERE session = ?', key);
    return true;
  }

  /** Adds to the row of every session that the events are of. @returns the keys of those rows */
  #countIn(pending: readonly PendingEvent[]): ReadonlyMap<string, number> {
    const changes = new Map<string, SessionChange>();
    for (const { event } of pending) {
      const change = changes.get(event.sessionKey) ?? new SessionChange(event.at);
      change.add(event);
      changes.set(event.sessionKey, change);
    }
    return new Map([...changes].map(([sessionKey, change]) => [sessionKey, this.#putSession(sessionKey, change)]));
  }

  #putSession(sessionKey: string, change: SessionChange): number {
    const row = this.#database.get(
      upsertSession,
      sessionKey,
      change.startedAt,
      change.lastActivityAt,
      change.displayName ?? null,
      change.channelName ?? null,
      ...counters.map((name) => change.counts[name]),
    );
    return Number(row?.['key']);
  }

  #event(sessionKey: string, row: Row): TraceEvent {
    const rest = parseColumn<Omit<TraceEvent, 'id' | 'sessionKey' | 'type'>>(row['json'], this.#database.file);
    return { id: Number(row['id']), sessionKey, type: row['type'] as TraceEvent['type'], ...rest };
  }
}

function sessionOf({ displayName, channelName, ...row }: Row): TraceSession {
  return {
    ...(row as Omit<TraceSession, 'displayName' | 'channelName'>),
    ...(typeof displayName === 'string' && { displayName }),
    ...(typeof channelName === 'string' && { channelName }),
  };
}
