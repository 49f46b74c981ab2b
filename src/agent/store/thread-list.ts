import { join } from 'node:path';
import type { SQLInputValue } from 'node:sqlite';
import type { Turn } from '../../protocol/index.ts';
import type { StoredThread, StoredTurn } from '../thread-store.ts';
import { firstInputOf } from './items.ts';
import { ReadOnlyDatabase } from './read-only-database.ts';
import { folded, parseColumn, type Row } from './rows.ts';
import { itemsWith } from './texts.ts';
import { matchOf } from './words.ts';

/** A thread and the further fields of a list of threads. */
export interface ListedThread {
  readonly thread: StoredThread;
  /** Beginning of its first request, from the traces when its turns were undone; null before one. */
  readonly firstInput: string | null;
  readonly lastTurn: {
    readonly status: Turn['status'];
    readonly startedAt: string;
    readonly completedAt: string | null;
  } | null;
  /** Sums of its traces; null without a trace. */
  readonly work: {
    readonly totalMs: number;
    readonly toolMs: number;
    readonly waitMs: number;
    readonly pauseMs: number;
    readonly costUsd: number;
    readonly unpricedCount: number;
    readonly totalTokens: number;
  } | null;
}

export interface ThreadListRange {
  readonly limit: number;
  /** Part of the name, the first request or the id, in any case, or words of a message or answer; '': all. */
  readonly text: string;
  readonly includeArchived: boolean;
  /** Only forks that have files of their own. Default: all. */
  readonly forksOnly?: boolean;
}

/** Threads that one list tests at most, the most recently active ones: more would block the reader's process. */
const maxTested = 2_000;

const newest = `SELECT key, id, json FROM threads ORDER BY lastActiveAt DESC, key DESC LIMIT ${maxTested}`;
const searched =
  "ifnull(json_extract(t.json, '$.displayName'), '') || char(31) || ifnull(firstInput, '') || char(31) || id";

/**
 * Lists threads, most recently active first and without those of sub-agents, in the state `directory` of a workspace, whether or
 * not an agent server runs there. The database is opened for this one list and not changed.
 *
 * @param busyMs how long another process may hold the database
 * @throws StorageError failed (it is missing, or another version made it), corrupt, readOnly
 */
export function listThreads(directory: string, range: ThreadListRange, busyMs: number): readonly ListedThread[] {
  const database = new ReadOnlyDatabase(join(directory, 'state.db'), busyMs);
  try {
    const values: SQLInputValue[] = [];
    const conditions = [
      "json_extract(t.json, '$.parentThreadId') IS NULL",
      "json_extract(t.json, '$.isTransient') IS NULL",
    ];
    if (!range.includeArchived) conditions.push("json_extract(t.json, '$.status') <> 'archived'");
    if (range.forksOnly === true) {
      conditions.push("json_extract(t.json, '$.forkedFromThreadId') IS NOT NULL");
      conditions.push("json_extract(t.json, '$.config.workspaceOverride') IS NOT NULL");
    }
    if (range.text !== '') {
      const inTexts = `t.key IN (SELECT thread FROM items WHERE key IN (${itemsWith}))`;
      const match = matchOf(range.text);
      conditions.push(`(instr(folded(${searched}), ?) > 0${match === null ? '' : ` OR ${inTexts}`})`);
      values.push(folded(range.text), ...(match === null ? [] : [match, match]));
    }
    const sql = `SELECT t.json AS json, ifnull(${firstInputOf('t.key')}, firstInput) AS firstInput,
        (SELECT json FROM turns WHERE thread = t.key ORDER BY key DESC LIMIT 1) AS turn,
        turnDurationMs, toolDurationMs, approvalWaitMs, pauseMs, costUsd, unpricedCount, inputTokens + outputTokens AS totalTokens
      FROM (${newest}) AS t LEFT JOIN traceSessions ON sessionKey = t.id
      WHERE ${conditions.join(' AND ')} LIMIT ?`;
    return database.all(sql, ...values, range.limit).map((row) => listed(row, database.file));
  } finally {
    database.close();
  }
}

function listed({ json, firstInput, turn, ...sums }: Row, file: string): ListedThread {
  const last = turn === null ? null : parseColumn<StoredTurn>(turn, file);
  return {
    thread: parseColumn<StoredThread>(json, file),
    firstInput: firstInput === null ? null : String(firstInput),
    lastTurn: last && { status: last.status, startedAt: last.startedAt, completedAt: last.completedAt ?? null },
    work:
      sums['turnDurationMs'] === null
        ? null
        : {
            totalMs: Number(sums['turnDurationMs']),
            toolMs: Number(sums['toolDurationMs']),
            waitMs: Number(sums['approvalWaitMs']),
            pauseMs: Number(sums['pauseMs']),
            costUsd: Number(sums['costUsd']),
            unpricedCount: Number(sums['unpricedCount']),
            totalTokens: Number(sums['totalTokens']),
          },
  };
}
