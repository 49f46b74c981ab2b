import { jitters } from '../../lib/index.ts';

/** Limits and times of the store; milliseconds unless noted. */
export const limits = {
  /** Maximum rows per page of a list. */
  maxPage: 1_000,
  /** A waiting run is reserved for this long for a worker that has its repository checked out; then any worker takes it. */
  affinityMs: 30_000,
  /** Rows deleted per transaction, so that other writes can run in between. */
  pruneSlice: 500,
  /** Interval of unconditional wake-ups: a hint can be lost, and the end of a lease sends none. */
  wakeMs: 2_000,
  /** Hints for other processes are collected for this long. */
  notifyMs: 20,
  /** Retries of a transaction that has certainly not been committed. */
  retries: 4,
  /** Pause before each retry. */
  retryBackoff: { firstMs: 25, jitter: jitters.halfAround },
  /** Jobs completed per statement. */
  completions: 50,
  sqlite: {
    /** Time to wait for another process that writes. */
    busyMs: 5_000,
    /** Transactions per commit. */
    groupSize: 256,
    /** Transactions in the queue; further ones are rejected. */
    maxWaiting: 20_000,
    /** Prepared statements per connection. */
    maxStatements: 500,
    /** Size of the write-ahead log after a checkpoint, in bytes. */
    logBytes: 16 * 1_048_576,
  },
  postgres: {
    /** Connections of the pool; the listener has one more. */
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
