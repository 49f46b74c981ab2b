import type { NewTraceEvent, TraceEvent } from '../../protocol/index.ts';
import type { Database } from './database.ts';
import type { Row } from './rows.ts';
import { addCounts, type Counts, counters, facts, noCounts, plus, SessionChange, sums } from './trace-counters.ts';

/** An event that waits to be written, and its JSON text without the fields that have columns. */
export interface PendingEvent {
  readonly event: NewTraceEvent;
  readonly json: string;
}

/** Rule for the sessions that may be deleted. */
export interface Expiry {
  /** Time before which the last activity lies; absent: at any time. */
  readonly before?: string | undefined;
  /** Most events to leave: sessions are forgotten until no more events remain. */
  readonly maxEvents?: number | undefined;
}

/**
 * Events of one INSERT: they share most of the cost of a statement. OR ROLLBACK: a statement that fails
 * fails the transaction, so SQLite need not note how to take back half of one.
 */
const rowsPerInsert = 20;
const insertOf = (rows: number): string =>
  `INSERT OR ROLLBACK INTO traceEvents (session, type, json) VALUES ${Array(rows).fill('(?, ?, ?)').join(', ')}`;
const insertOne = insertOf(1);
const insertMany = insertOf(rowsPerInsert);

const marks = (names: readonly string[]): string => names.map(() => '?').join(', ');

/** A fact takes its newest known value, but `firstInput` retains its first one. */
const upsertSession = `
  INSERT INTO traceSessions (sessionKey, startedAt, lastActivityAt, ${facts.join(', ')}, ${counters.join(', ')})
  VALUES (?, ?, ?, ${marks(facts)}, ${marks(counters)})
  ON CONFLICT (sessionKey) DO UPDATE SET
    startedAt = min(startedAt, excluded.startedAt),
    lastActivityAt = max(lastActivityAt, excluded.lastActivityAt),
    ${facts.map((name) => `${name} = ${name === 'firstInput' ? 'ifnull(firstInput, excluded.firstInput)' : `ifnull(excluded.${name}, ${name})`}`).join(', ')},
    ${counters.map((name) => `${name} = ${plus(name, `excluded.${name}`)}`).join(', ')}
  RETURNING key, eventCount`;

const addToTotals = `
  UPDATE traceTotals SET sessionCount = sessionCount + ?, ${counters.map((name) => `${name} = ${plus(name, '?')}`).join(', ')}`;

/** Searches the longest call of all only when a deleted session may have had it. */
const takeFromTotals = `
  UPDATE traceTotals SET sessionCount = sessionCount - ?, ${sums.map((name) => `${name} = ${name} - ?`).join(', ')},
    maxToolDurationMs = CASE WHEN maxToolDurationMs > ? THEN maxToolDurationMs
      ELSE (SELECT ifnull(max(maxToolDurationMs), 0) FROM traceSessions) END`;

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

  /** Deletes a session. Its events are hidden at once, and `sweep` removes them from the disk. */
  deleteSession(sessionKey: string): boolean {
    return this.#forget('sessionKey = ?', sessionKey) > 0;
  }

  /** All but those. @returns how many */
  deleteAllSessions(keep: readonly string[]): number {
    return this.#forget('sessionKey NOT IN (SELECT value FROM json_each(?))', JSON.stringify(keep));
  }

  /**
   * Deletes the sessions that were not active for the longest time, but none in which a turn runs. The one that was active
   * last does not go for its length. @returns how many: `limit` when there may be more
   */
  expire({ before, maxEvents }: Expiry, limit: number): number {
    const left = Number(this.#database.get('SELECT eventCount FROM traceTotals')?.['eventCount']);
    let surplus = maxEvents === undefined ? 0 : left - maxEvents;
    const gone: number[] = [];
    for (const { key, eventCount, lastActivityAt, isNewest } of this.#oldest(limit)) {
      const isOld = before !== undefined && String(lastActivityAt) < before;
      if (!isOld && (surplus <= 0 || isNewest === 1)) break;
      gone.push(Number(key));
      surplus -= Number(eventCount);
    }
    return gone.length === 0 ? 0 : this.#forget('key IN (SELECT value FROM json_each(?))', JSON.stringify(gone));
  }

  hasRemains(): boolean {
    return this.#database.get('SELECT 1 FROM traceRemains LIMIT 1') !== undefined;
  }

  /** Takes away at most `limit` events of a deleted session, the newest first. @returns whether there may be more */
  sweep(limit: number): boolean {
    const row = this.#database.get('SELECT session FROM traceRemains LIMIT 1');
    if (!row) return false;
    const key = Number(row['session']);
    const { changes } = this.#database.run(
      'DELETE FROM traceEvents WHERE id IN (SELECT id FROM traceEvents WHERE session = ? ORDER BY id DESC LIMIT ?)',
      key,
      limit,
    );
    if (changes < limit) this.#database.run('DELETE FROM traceRemains WHERE session = ?', key);
    return true;
  }

  #oldest(limit: number): readonly Row[] {
    return this.#database.all(
      `SELECT key, eventCount, lastActivityAt,
         key = (SELECT key FROM traceSessions ORDER BY lastActivityAt DESC, key DESC LIMIT 1) AS isNewest
       FROM traceSessions WHERE lastStatus IS NOT 'running' ORDER BY lastActivityAt, key LIMIT ?`,
      limit,
    );
  }

  /** @returns how many sessions the condition met */
  #forget(condition: string, value: string): number {
    return this.#database.together(() => {
      const gone = this.#database.get(
        `SELECT count(*) AS sessionCount, ${sums.map((name) => `sum(${name}) AS ${name}`).join(', ')},
           max(maxToolDurationMs) AS maxToolDurationMs
         FROM traceSessions WHERE ${condition}`,
        value,
      );
      const count = Number(gone?.['sessionCount']);
      if (!gone || count === 0) return 0;
      this.#database.run(`INSERT INTO traceRemains SELECT key FROM traceSessions WHERE ${condition}`, value);
      this.#database.run(`DELETE FROM traceSessions WHERE ${condition}`, value);
      this.#database.run(takeFromTotals, count, ...counters.map((name) => gone[name] ?? 0));
      return count;
    });
  }

  /** Adds to the row of every session that the events are of, and to the totals. @returns the keys of those rows */
  #countIn(pending: readonly PendingEvent[]): ReadonlyMap<string, number> {
    const changes = new Map<string, SessionChange>();
    for (const { event } of pending) {
      const change = changes.get(event.sessionKey) ?? new SessionChange(event.at);
      change.add(event);
      changes.set(event.sessionKey, change);
    }
    const keys = new Map<string, number>();
    const counts = noCounts();
    let sessions = 0;
    for (const [sessionKey, change] of changes) {
      const { key, isNew } = this.#putSession(sessionKey, change);
      keys.set(sessionKey, key);
      addCounts(counts, change.counts);
      if (isNew) sessions += 1;
    }
    this.#database.run(addToTotals, sessions, ...valuesOf(counts));
    return keys;
  }

  #putSession(sessionKey: string, change: SessionChange): { readonly key: number; readonly isNew: boolean } {
    const row = this.#database.get(
      upsertSession,
      sessionKey,
      change.startedAt,
      change.lastActivityAt,
      ...facts.map((name) => change.facts[name] ?? null),
      ...valuesOf(change.counts),
    );
    // Every change has an event: a row with no others was not there before.
    return { key: Number(row?.['key']), isNew: Number(row?.['eventCount']) === change.counts.eventCount };
  }
}

const valuesOf = (counts: Readonly<Counts>): readonly number[] => counters.map((name) => counts[name]);
