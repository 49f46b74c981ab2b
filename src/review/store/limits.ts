import { jitters } from '../../lib/index.ts';

/** Limits and times of the store, in one place. Milliseconds, unless it says otherwise. */
export const limits = {
  /** Rows of one page of a list. */
  maxPage: 1_000,
  /** A wish to review waits so long for a worker that has its repository at hand; then any takes it. */
  affinityMs: 30_000,
  /** Rows that are deleted in one transaction: others have their turn in between. */
  pruneSlice: 500,
  /** Besides the hints, everybody is woken this often: a hint may be lost, and a lease runs out without a word. */
  wakeMs: 2_000,
  /** Hints for other processes are gathered for so long. */
  notifyMs: 20,
  /** Times a transaction is tried again that has certainly not been committed. */
  retries: 4,
  /** Pause before each of them. */
  retryBackoff: { firstMs: 25, jitter: jitters.halfAround },
  /** Jobs that are completed by one statement. */
  completions: 50,
  sqlite: {
    /** For another process that is writing. */
    busyMs: 5_000,
    /** Transactions in one commit. */
    groupSize: 256,
    /** Transactions that wait for their turn; more are refused. */
    maxWaiting: 20_000,
    /** Statements that are kept prepared. */
    maxStatements: 500,
    /** Of the log, what is left of its file after a burst of writing; bytes. */
    logBytes: 16 * 1_048_576,
  },
  postgres: {
    /** Connections of the pool. One more listens. */
    connections: 10,
    connectMs: 10_000,
    statementMs: 30_000,
    idleInTransactionMs: 30_000,
    /** An unused connection is closed after this time. */
    idleMs: 60_000,
    /** Pause before each attempt to listen again. */
    relisten: { firstMs: 100, capMs: 5_000, jitter: jitters.upperHalf },
  },
} as const;
