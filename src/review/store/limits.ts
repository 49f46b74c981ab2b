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
  /** No retry after this time: the caller waits, or repeats its work later. */
  retryMs: 10_000,
  /** An outage of the database is over after this time without a failure. */
  recoveryMs: 5_000,
  /** Interval of log lines during an outage. */
  reminderMs: 60_000,
  /** Pause before each retry. */
  retryBackoff: { firstMs: 25, jitter: jitters.halfAround },
  /** A job whose attempts fail in outages of the database does not count them for this long after its creation. */
  keptAttemptsMs: 24 * 3_600_000,
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
    /** Time of a statement, enforced by the server. */
    statementMs: 12_000,
    /** Further time before this process gives up a statement and destroys its connection. */
    graceMs: 3_000,
    /** Time of a statement that changes the schema. */
    migrationMs: 600_000,
    idleInTransactionMs: 10_000,
    /** The kernel probes a silent connection after this time. */
    keepAliveMs: 5_000,
    /** A connection is probed before its use after this time without an answer. */
    probeAfterMs: 1_000,
    /** Time for the answer to a probe. */
    probeMs: 3_000,
    /** Interval of probes of the listening connection. */
    listenProbeMs: 10_000,
    /** A connection is replaced after this time. */
    lifetimeMs: 1_800_000,
    /** Time to end the connections when the store is closed; then their sockets are destroyed. */
    closeMs: 1_000,
    /** Attempts to listen after which the failure is logged. */
    listenFailures: 6,
    /** An unused connection is closed after this time. */
    idleMs: 60_000,
    /** Pause before each attempt to listen again. */
    relisten: { firstMs: 100, capMs: 5_000, jitter: jitters.upperHalf },
  },
} as const;
