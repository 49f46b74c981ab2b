import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { defaults } from '../../protocol/index.ts';
import { loadSqlite } from '../../supervise/index.ts';
import { Database } from './database.ts';
import { storageError } from './errors.ts';
import { harmlessAutomation, harmlessThread } from './import-rights.ts';
import { checkSchemaOf, migrations, versionOf } from './migrations.ts';
import type { Row } from './rows.ts';
import { checkFiles } from './schema-check.ts';
import { counters, facts, sums } from './trace-counters.ts';

export interface ImportOptions {
  /** A database that an earlier version has made in a workspace. It is read, never changed. */
  readonly from: string;
  /** Directory of the state that takes the history. Its `state.db` is created if it is missing. */
  readonly into: string;
  /** Canonical path of the workspace. */
  readonly workspacePath: string;
}

/** Counts of imported records; automations by id. */
export interface ImportedHistory {
  readonly threads: number;
  readonly traceSessions: number;
  readonly automations: readonly string[];
}

/**
 * Copies history into a state: conversations, traces, and automations switched off. Rights are left behind:
 * grants, approval policies, queued input, working directories. One transaction that does not change existing rows, so
 * it may be interrupted and repeated.
 *
 * @throws StorageError corrupt (not a database of ours, a symlink, another user's), failed, diskFull, readOnly
 */
export function importHistory({ from, into, workspacePath }: ImportOptions): ImportedHistory {
  const database = new Database(join(into, 'state.db'));
  try {
    const source = new Source(from, join(into, 'import.db'));
    try {
      return database.transaction(() => {
        const threads = copyThreads(source, database, workspacePath);
        const traceSessions = copyTraces(source, database);
        return { threads, traceSessions, automations: copyAutomations(source, database) };
      });
    } finally {
      source.close();
    }
  } finally {
    database.close();
  }
}

/** The old database, open for reading. One that an older version has made is copied first, and the copy brought up to date. */
class Source {
  readonly #file: string;
  readonly #copy: string;
  readonly #sqlite: DatabaseSync;

  constructor(file: string, copy: string) {
    this.#file = file;
    this.#copy = copy;
    this.#sqlite = this.#guard(() => this.#open());
  }

  /** Rows one after the other: a history may be larger than memory. */
  *rows(sql: string, ...values: SQLInputValue[]): Generator<Row> {
    const rows = this.#guard(() => this.#sqlite.prepare(sql).iterate(...values));
    for (;;) {
      const next = this.#guard(() => rows.next());
      if (next.done) return;
      yield next.value as Row;
    }
  }

  close(): void {
    this.#sqlite.close();
    this.#removeCopy();
  }

  #open(): DatabaseSync {
    checkFiles(this.#file);
    this.#removeCopy();
    const sqlite = openReadOnly(this.#file);
    try {
      checkSchemaOf(sqlite, this.#file);
      if (versionOf(sqlite) === migrations.length) return sqlite;
      sqlite.prepare('VACUUM INTO ?').run(this.#copy);
    } catch (error) {
      sqlite.close();
      throw error;
    }
    sqlite.close();
    new Database(this.#copy).close();
    return openReadOnly(this.#copy);
  }

  #removeCopy(): void {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${this.#copy}${end}`, { force: true });
  }

  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw storageError(error, this.#file);
    }
  }
}

function openReadOnly(file: string): DatabaseSync {
  const sqlite = new (loadSqlite().DatabaseSync)(file, { readOnly: true, timeout: defaults.agent.storeBusyMs });
  sqlite.exec('PRAGMA trusted_schema = OFF');
  return sqlite;
}

const value = (row: Row, name: string): SQLInputValue => row[name] ?? null;

/** Inserts the columns of `row` with `more` in their place. @returns the new key; undefined when it is there already */
function insert(database: Database, table: string, row: Row, more: Record<string, SQLInputValue>): number | undefined {
  const names = [...new Set([...Object.keys(row).filter((name) => name !== 'key'), ...Object.keys(more)])];
  const { changes, lastKey } = database.run(
    `INSERT OR IGNORE INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    ...names.map((name) => more[name] ?? value(row, name)),
  );
  return changes > 0 ? lastKey : undefined;
}

function copyThreads(source: Source, database: Database, workspacePath: string): number {
  let count = 0;
  for (const row of source.rows('SELECT key, id, lastActiveAt, nextTurn, nextItem, json FROM threads ORDER BY key')) {
    const json = harmlessThread(row, workspacePath);
    const thread = json === undefined ? undefined : insert(database, 'threads', row, { json });
    if (thread === undefined) continue;
    count += 1;
    copyThread(source, database, { from: value(row, 'key'), to: thread });
  }
  return count;
}

function copyThread(source: Source, database: Database, thread: { from: SQLInputValue; to: number }): void {
  const turns = new Map<unknown, number>();
  const items = new Map<unknown, number>();
  for (const row of source.rows(
    'SELECT key, id, number, status, json FROM turns WHERE thread = ? ORDER BY key',
    thread.from,
  )) {
    const key = insert(database, 'turns', row, { thread: thread.to });
    if (key !== undefined) turns.set(row['key'], key);
  }
  for (const row of source.rows(
    'SELECT key, turn, id, number, canGrow, json FROM items WHERE thread = ? ORDER BY key',
    thread.from,
  )) {
    const turn = turns.get(row['turn']);
    const key = turn === undefined ? undefined : insert(database, 'items', row, { thread: thread.to, turn });
    if (key !== undefined) items.set(row['key'], key);
  }
  for (const row of source.rows(
    'SELECT item, number, json FROM pieces WHERE item IN (SELECT key FROM items WHERE thread = ?) ORDER BY item, number',
    thread.from,
  )) {
    const item = items.get(row['item']);
    if (item !== undefined) insert(database, 'pieces', row, { item });
  }
  for (const row of source.rows(
    'SELECT throughTurn, json FROM compactions WHERE thread = ? ORDER BY key',
    thread.from,
  )) {
    const throughTurn = turns.get(row['throughTurn']);
    if (throughTurn !== undefined) insert(database, 'compactions', row, { thread: thread.to, throughTurn });
  }
}

const sessionColumns = ['key', 'sessionKey', 'startedAt', 'lastActivityAt', ...facts, ...counters].join(', ');

/** Counts the sums of all sessions again; otherwise every write updates them. */
const countTotals = `UPDATE traceTotals SET sessionCount = (SELECT count(*) FROM traceSessions),
  ${sums.map((name) => `${name} = (SELECT ifnull(sum(${name}), 0) FROM traceSessions)`).join(', ')},
  maxToolDurationMs = (SELECT ifnull(max(maxToolDurationMs), 0) FROM traceSessions)`;

function copyTraces(source: Source, database: Database): number {
  let count = 0;
  for (const row of source.rows(`SELECT ${sessionColumns} FROM traceSessions ORDER BY key`)) {
    const session = insert(database, 'traceSessions', row, {});
    if (session === undefined) continue;
    count += 1;
    const events = source.rows('SELECT type, json FROM traceEvents WHERE session = ? ORDER BY id', value(row, 'key'));
    for (const event of events) insert(database, 'traceEvents', event, { session });
  }
  if (count > 0) database.run(countTotals);
  return count;
}

const automationColumns = 'key, id, kind, version, createdAt, updatedAt, progress, json';

function copyAutomations(source: Source, database: Database): readonly string[] {
  const ids: string[] = [];
  for (const row of source.rows(`SELECT ${automationColumns} FROM automations ORDER BY key`)) {
    const harmless = harmlessAutomation(row);
    const automation = harmless && insert(database, 'automations', row, { ...harmless, enabled: 0, nextAt: null });
    if (automation === undefined) continue;
    ids.push(String(row['id']));
    const runs = source.rows(
      "SELECT scheduledFor, attempt, status, json FROM automationRuns WHERE automation = ? AND status <> 'running' ORDER BY key",
      value(row, 'key'),
    );
    for (const run of runs) insert(database, 'automationRuns', run, { automation });
  }
  return ids;
}
