/** Every timeout, limit and default that is not a user's setting. Units are in the names. The one table. */
export const defaults = {
  http: {
    headerBytes: 16_384,
    hubBodyBytes: 1_048_576,
    chatBodyBytes: 32 * 1_048_576,
    requestDeadlineMs: 30_000,
    /** `ensure`, `stop` and `restart` wait for a process: longer than start plus stop together. */
    longRequestDeadlineMs: 90_000,
    closeGraceMs: 500,
  },
  sse: { heartbeatMs: 15_000, retryMs: 2_000, bufferBytes: 1_048_576, ringEvents: 4_096, ringBytes: 16 * 1_048_576 },
  jsonRpc: { frameBytes: 4 * 1_048_576, bufferedBytes: 16 * 1_048_576, inFlightPerConnection: 32, openQuestions: 256 },
  supervise: {
    gracefulStopMs: 3_000,
    killVerifyMs: 5_000,
    /** Longest a shutdown of the Hub may take: a polite stop, a forced one, and a little more. */
    drainDeadlineMs: 10_000,
    probeIntervalMs: 5_000,
    probeTimeoutMs: 3_000,
    livenessFailures: 3,
    unhealthyGraceMs: 15_000,
    startDeadlineMs: 30_000,
    readinessPollMs: 4,
    readinessPollMaxMs: 500,
    backoffBaseMs: 500,
    backoffCapMs: 30_000,
    stableAfterMs: 30_000,
    maxRestarts: 5,
    withinSeconds: 120,
    adoptPollMs: 1_000,
    logBytes: 8 * 1_048_576,
    recentStderrBytes: 16_384,
    portCooldownMs: 60_000,
  },
  apiProxy: { readyDeadlineMs: 15_000, readyPollMs: 100, requestTimeoutMs: 3_000 },
  client: { hubStartMs: 15_000, hubPollMs: 25, statusTimeoutMs: 2_000 },
  agent: {
    /** A call that is the same as this many before it in a row is not run again. */
    identicalCalls: 3,
    /** Turns that a page of a thread holds when nobody says how many. */
    turnPage: 50,
    /** For a summary that a user asked for. */
    compactionMs: 120_000,
    dynamicToolCallMs: 120_000,
    /** A tool that has to end its processes needs a moment; a turn that is cancelled waits no longer than this. */
    cancelGraceMs: 5_000,
    /** Of one tool result, as the model is told it; a tool that has a limit of its own stays below. */
    toolResultChars: 100_000,
    /** Of a command's output that its item keeps. */
    commandOutputChars: 200_000,
    traceBufferEvents: 20_000,
    traceFlushMs: 20,
    /** Of a text that a trace keeps. */
    traceTextChars: 20_000,
  },
  chat: {
    heartbeatMs: 10_000,
    /** A non-streaming answer that takes longer sends its headers and then newlines: clients give up on silence. */
    trickleAfterMs: 15_000,
    trickleMs: 10_000,
    idempotencyMs: 600_000,
    idempotencyEntries: 1_000,
    maxMessages: 10_000,
  },
  inspect: { ringRecords: 512, coalesceMs: 16 },
} as const;
