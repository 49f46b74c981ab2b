/** Reads the turns that a workspace's next agent server takes over, from the database. */
import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { workspaceStateDirectory } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { loadSqlite } from '../supervise/index.ts';

/** Longest wait for another process that holds the database: the Hub answers no request during it. */
const busyMs = 10;
/** Most turns to read. */
const maxTurns = 1_000;

// A view or a virtual table of that name could take any time.
const tableSql = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'turnActors' AND sql LIKE 'CREATE TABLE %'`;
const timesSql = `
  SELECT CASE WHEN json_valid(json) THEN json_extract(json, '$.savedAt') END AS savedAt,
    CASE WHEN json_valid(json) AND json_extract(json, '$.state') = 'waitingForQuota'
      THEN json_extract(json, '$.context.patience.quotaUntil') END AS waitsUntil
  FROM turnActors LIMIT ${maxTurns}`;
const hourMs = 3_600_000;

/**
 * Reads the unfinished turns of a workspace; empty for a missing, damaged or older database.
 *
 * @returns for each turn the time of its latest facts, or of the end of its wait for a quota, in milliseconds since the epoch; NaN: the facts cannot be read
 */
export function unfinishedTurns(home: string, workspacePath: string, logger: Logger): readonly number[] {
  const file = join(workspaceStateDirectory(home, workspacePath), 'state.db');
  try {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found) return [];
    if (!found.isFile() || found.uid !== process.getuid?.()) throw new Error('not a file of this user');
    return readTimes(file);
  } catch (error) {
    logger.warn('could not read the unfinished turns of a workspace; its agent server starts with the next request', {
      ...{ workspacePath, file },
      reason: messageOf(error),
    });
    return [];
  }
}

/** Number of these turns that continue at a start now. @param withinHours 0: none continues; null: unknown, and every turn counts */
export function countContinuing(turns: readonly number[], withinHours: number | null): number {
  if (withinHours === null) return turns.length;
  if (withinHours === 0) return 0;
  const oldest = Date.now() - withinHours * hourMs;
  return turns.filter((savedAt) => savedAt >= oldest).length;
}

function readTimes(file: string): readonly number[] {
  const address = pathToFileURL(file);
  // Otherwise a reader makes the files of the write-ahead log, which a closed database does not have, and leaves them.
  if (!existsSync(`${file}-wal`)) address.searchParams.set('immutable', '1');
  const database = new (loadSqlite().DatabaseSync)(address, { readOnly: true, timeout: busyMs });
  try {
    if (!database.prepare(tableSql).get()) return [];
    return database
      .prepare(timesSql)
      .all()
      .map(({ savedAt, waitsUntil }) => Math.max(Date.parse(String(savedAt)), Number(waitsUntil ?? 0) || 0));
  } finally {
    database.close();
  }
}
