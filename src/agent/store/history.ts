import { join } from 'node:path';
import { defaults, firstWords, type Thread, type ThreadSummary, type Turn } from '../../protocol/index.ts';
import type { ScheduleReader } from '../schedule-store.ts';
import { StorageError, type StoredThread, type TraceReader } from '../thread-store.ts';
import { ReadOnlyDatabase } from './read-only-database.ts';
import type { Rows } from './rows.ts';
import { ScheduleQueries } from './schedules.ts';
import { ThreadQueries } from './thread-queries.ts';
import { TraceQueries } from './trace-queries.ts';

/** Range of turns to read: the newest turns, or the turns before a given one. */
export interface ReadRange {
  readonly turnLimit?: number | undefined;
  readonly beforeTurnId?: string | undefined;
}

/** Conversations as clients see them, without an agent server. */
export interface ThreadReader {
  list(includeArchived: boolean): ThreadSummary[];
  /** Undefined for a thread that does not exist. */
  read(threadId: string, range: ReadRange): Thread | undefined;
}

/** Stored facts of a workspace, for reading only. */
export interface History {
  readonly traces: TraceReader;
  readonly schedules: ScheduleReader;
  readonly threads: ThreadReader;
  /** Reason that there is nothing to read; undefined if there is. */
  readonly problem: string | undefined;
  close(): void;
}

/**
 * Opens the history of a workspace for reading, even while its agent server runs: the server's writes are visible to the next query.
 * Neither creates nor changes the database, but SQLite may put the two files of its log beside it. `directory` is the state of the
 * workspace, below the home.
 *
 * @param isOptional returns an empty history if the database is missing or damaged
 * @throws StorageError failed (it is missing, or another version made it), corrupt, readOnly
 */
export function openHistory(directory: string, isOptional = false): History {
  const file = join(directory, 'state.db');
  try {
    const database = new ReadOnlyDatabase(file);
    return historyOf(database, undefined, () => database.close());
  } catch (error) {
    if (!isOptional || !(error instanceof StorageError)) throw error;
    return historyOf({ file, get: () => undefined, all: () => [] }, error.message, () => {});
  }
}

const historyOf = (rows: Rows, problem: string | undefined, close: () => void): History => ({
  traces: new TraceQueries(rows),
  schedules: new ScheduleQueries(rows),
  threads: new Threads(new ThreadQueries(rows)),
  problem,
  close,
});

class Threads implements ThreadReader {
  readonly #queries: ThreadQueries;

  constructor(queries: ThreadQueries) {
    this.#queries = queries;
  }

  list(includeArchived: boolean): ThreadSummary[] {
    return this.#queries
      .threads()
      .filter(({ parentThreadId, isTransient }) => parentThreadId === undefined && !isTransient)
      .filter(({ status }) => includeArchived || status !== 'archived')
      .map((thread) => ({ ...this.#named(thread), runtime: { running: false, waitingOnApproval: false } }));
  }

  read(threadId: string, { turnLimit = defaults.agent.turnPage, beforeTurnId }: ReadRange): Thread | undefined {
    const thread = this.#queries.thread(threadId);
    if (!thread) return undefined;
    const turns = this.#queries.turns(threadId, { limit: turnLimit + 1, before: beforeTurnId });
    return {
      ...this.#named(thread),
      queuedInputs: [...this.#queries.queue(threadId)],
      turns: turns.slice(-turnLimit).map(atRest),
      hasOlderTurns: turns.length > turnLimit,
    };
  }

  #named({ isTransient: _, ...thread }: StoredThread): Omit<StoredThread, 'isTransient'> & Pick<Thread, 'firstInput'> {
    const firstInput = firstWords(this.#queries.firstInput(thread.id) ?? '');
    return { ...thread, ...(firstInput !== '' && { firstInput }) };
  }
}

/** Without an agent server no turn runs; the next start continues or ends this one. */
const atRest = (turn: Turn): Turn =>
  turn.completedAt === undefined
    ? { ...turn, status: 'cancelled', completedAt: turn.startedAt, interruptedBy: 'crash' }
    : turn;
