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
  jsonRpc: { frameBytes: 4 * 1_048_576, bufferedBytes: 16 * 1_048_576, inFlightPerConnection: 32 },
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
  inspect: { ringRecords: 512, coalesceMs: 16 },
} as const;
