/** Turns that a workspace's next agent server would resume, counted in its database. */
import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { workspaceStateDirectory } from '../config/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { loadSqlite } from '../supervise/index.ts';

/** Longest wait for another process that holds the database: the Hub answers no request during it. */
const busyMs = 10;
/** Turns that are counted at most. */
const maxTurns = 1_000;

// A view or a virtual table of that name could take any time.
const tableSql = `SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'turnActors' AND sql LIKE 'CREATE TABLE %'`;
const countSql = `SELECT count(*) AS turns FROM (SELECT 1 FROM turnActors LIMIT ${maxTurns})`;

/** Number of unfinished turns of a workspace. A database that is missing, damaged or of an earlier version has none. */
export function unfinishedTurns(home: string, workspacePath: string, logger: Logger): number {
  const file = join(workspaceStateDirectory(home, workspacePath), 'state.db');
  try {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found) return 0;
    if (!found.isFile() || found.uid !== process.getuid?.()) throw new Error('not a file of this user');
    return countTurns(file);
  } catch (error) {
    logger.warn('could not count the unfinished turns of a workspace; its agent server starts with the next request', {
      ...{ workspacePath, file },
      reason: messageOf(error),
    });
    return 0;
  }
}

function countTurns(file: string): number {
  const address = pathToFileURL(file);
  // Otherwise a reader makes the files of the write-ahead log, which a closed database does not have, and leaves them.
  if (!existsSync(`${file}-wal`)) address.searchParams.set('immutable', '1');
  const database = new (loadSqlite().DatabaseSync)(address, { readOnly: true, timeout: busyMs });
  try {
    return database.prepare(tableSql).get() ? Number(database.prepare(countSql).get()?.['turns']) : 0;
  } finally {
    database.close();
  }
}
