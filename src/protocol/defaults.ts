const mebibyte = 1_048_576;
const frameBytes = 4 * mebibyte;

/** Every timeout, limit and default that is not a user's setting. Units are in the names. The one table. */
export const defaults = {
  http: {
    headerBytes: 16_384,
    hubBodyBytes: mebibyte,
    chatBodyBytes: 32 * mebibyte,
    requestDeadlineMs: 30_000,
    /** `ensure`, `stop` and `restart` wait for a process: longer than start plus stop together. */
    longRequestDeadlineMs: 90_000,
    closeGraceMs: 500,
  },
  sse: { heartbeatMs: 15_000, retryMs: 2_000, bufferBytes: mebibyte, ringEvents: 4_096, ringBytes: 16 * mebibyte },
  jsonRpc: { frameBytes, bufferedBytes: 16 * mebibyte, inFlightPerConnection: 32, openQuestions: 256 },
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
    logBytes: 8 * mebibyte,
    recentStderrBytes: 16_384,
    portCooldownMs: 60_000,
  },
  hub: {
    /** How often `hub.lock` is checked where no file system event says that it changed. */
    addressCheckMs: 5_000,
    /** Pause between two publications of `hub.lock`. */
    addressRestMs: 250,
  },
  apiProxy: { readyDeadlineMs: 15_000, readyPollMs: 100, requestTimeoutMs: 3_000 },
  client: {
    hubStartMs: 15_000,
    hubPollMs: 25,
    statusTimeoutMs: 2_000,
    /** An agent server that says nothing for this long is asked for a sign of life, and a person is notified. */
    silenceNoticeMs: 2_000,
    /** After this long without one the connection is given up. */
    silenceDeadlineMs: 20_000,
    /** For an interrupt, which a healthy server answers at once. */
    interruptMs: 5_000,
  },
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
    /** What one transaction of traces writes at most: some milliseconds' work, between which the event loop turns. */
    traceSliceEvents: 1_000,
    traceSliceChars: mebibyte,
    /** How long a disk is left alone that did not take a write. */
    traceRetryMs: 1_000,
    /** Events of deleted sessions that are taken off the disk at a time, and the pause in which others have the event loop. */
    traceSweepEvents: 500,
    traceSweepPauseMs: 10,
    /** For somebody else who is writing. There should be none: the workspace's lock is ours. */
    storeBusyMs: 500,
    /** Of the database's log, what is left of the file after a burst of writing. */
    storeLogBytes: 16 * mebibyte,
    /** About as many pages as SQLite lets gather before it moves them to the database itself. */
    checkpointPages: 1_000,
    /** From here on SQLite moves them in the way of a commit: our own checkpoints come long before. */
    inlineCheckpointPages: 8_192,
    /** For a checkpoint that is under way when the store is closed; after that the next start finishes it. */
    checkpointCloseMs: 5_000,
  },
  upstream: {
    /** One event of a stream; a longer one is no answer of a model. */
    eventBytes: 4 * mebibyte,
    /** A whole answer that was not streamed, or a list of models. */
    answerBytes: 32 * mebibyte,
    errorBytes: 65_536,
    /** Of an upstream's own words that an error repeats. */
    reasonChars: 500,
    idleMs: 120_000,
    retries: 3,
    backoffBaseMs: 500,
    backoffCapMs: 8_000,
    /** An upstream that asks for more is not waited for: the error says how long it wants. */
    retryAfterCapMs: 60_000,
    /** A connection nobody uses is closed after this time. */
    keptConnectionMs: 60_000,
    /** How long an answer that is complete may take to end its connection's use. */
    drainMs: 1_000,
  },
  chat: {
    heartbeatMs: 10_000,
    /** A non-streaming answer that takes longer sends its headers and then newlines: clients give up on silence. */
    trickleAfterMs: 15_000,
    trickleMs: 10_000,
    idempotencyMs: 600_000,
    idempotencyEntries: 1_000,
    maxMessages: 10_000,
    maxTools: 512,
    maxStopSequences: 4,
    /** Levels of JSON that is passed on as it is: schemas of tools and of answers. */
    jsonDepth: 200,
    sessionIdChars: 512,
    idempotencyKeyChars: 255,
    /** Newest turns of a session that are looked at to find out whether it has heard of the conversation. */
    lookBackTurns: 20,
    /** Requests that wait for one session; more are answered 429. */
    waitingPerSession: 16,
    /** Of finished answers that are kept for retries, all together. */
    replayChars: 64 * mebibyte,
    /** Of arguments and output that an activity event shows. */
    previewChars: 500,
    /** How long a list of models is good for. */
    modelsMs: 60_000,
    /** What a caller is told to wait who came when too much was going on. */
    retryAfterMs: 1_000,
  },
  agui: {
    maxTools: 128,
    maxContextEntries: 100,
    /** Of one entry of context, or of the state. */
    contextChars: 20_000,
    /** Of all that becomes instructions. */
    instructionChars: 60_000,
    /** Of an id that a client has chosen. */
    idChars: 512,
    /** How long a turn goes on that nobody follows any more. */
    disconnectGraceMs: 5_000,
  },
  acp: {
    /** Of one message of the editor. */
    messageBytes: 32 * mebibyte,
    /** Of a prompt on its way to the agent server: its frames are not longer. */
    promptBytes: frameBytes - 65_536,
    /** Messages that wait for an editor which does not read. */
    unreadMessages: 10_000,
    /** Of a command's output, the end of which is shown while it runs, and how often. */
    outputChars: 20_000,
    outputMs: 200,
    /** Of a tool's result, and of each side of a difference. */
    contentChars: 100_000,
    /** How long the turns of an editor that has gone are waited for. */
    leaveMs: 2_000,
    sessionsPerPage: 100,
  },
  mcp: {
    /** From the end of a server's input to SIGTERM, and from there to SIGKILL: together below what our own stop may take. */
    closeGraceMs: 500,
    gracefulStopMs: 1_000,
    /** For what a dead server left in its process group, between SIGTERM and SIGKILL. */
    sweepGraceMs: 500,
    /** A server on pipes that has not answered `server/discover` by then is one of the older era. At most half of its start-up time. */
    probeMs: 10_000,
    /** Before a subscription that the server ended is asked for again. */
    resubscribeMs: 1_000,
    /** After the exit of a server, for what is still in its pipes. */
    drainMs: 100,
    /** Of one message of a server. */
    messageBytes: 16 * mebibyte,
    stderrBytes: 8_192,
    /** Of standard error that an error text quotes. */
    quotedStderrChars: 1_000,
    errorChars: 500,
    /** Of one server. */
    maxTools: 512,
    /** Models take no longer names. */
    toolNameChars: 64,
    descriptionChars: 4_000,
    resultChars: 50_000,
    images: 8,
    /** Of all images of one result, as they come: in base64. */
    imageChars: 8 * mebibyte,
  },
  inspect: { ringRecords: 4_096, actorRingRecords: 64, endedActors: 100, coalesceMs: 16 },
  dashboard: {
    sessionsPerPage: 100,
    maxSessionsPerPage: 500,
    eventsPerPage: 1_000,
    maxEventsPerPage: 5_000,
    recentEvents: 20,
    /** Of a text in a list of events; the whole is fetched when somebody looks at it. */
    shortTextChars: 200,
    /** What a stream can be resumed from; the rest is in the database. */
    ringEvents: 16_384,
    ringBytes: 16 * mebibyte,
    streamBufferBytes: 4 * mebibyte,
    /** Frames of one moment go out together. */
    coalesceMs: 16,
    logLines: 2_000,
    loginTtlMs: 43_200_000,
    logins: 100,
    /** Wrong passwords in a row after which everybody has to wait, and how long at first and at most. */
    loginFailures: 5,
    loginPauseMs: 1_000,
    loginPauseMaxMs: 60_000,
    configBytes: 262_144,
  },
  automations: {
    /** The wall clock is looked at that often, so that sleep, a changed clock or daylight saving cannot hide a due time. */
    tickMs: 30_000,
    /** Due times right after each other are taken together. */
    slackMs: 5,
    maxAutomations: 20_000,
    runsPerAutomation: 200,
    recentRuns: 20,
    upcoming: 5,
    resultChars: 500,
    /** A run that a killed process left behind is tried again when it is not older than this. */
    resumeWithinMs: 3_600_000,
  },
  tracing: {
    sweepEveryMs: 3_600_000,
    /** Pages of the database that are given back to the file system at a time. */
    vacuumPages: 256,
  },
  telemetry: { flushMs: 800, queueSpans: 2_048, batchSpans: 512, delayMs: 2_000, exportTimeoutMs: 10_000 },
} as const;
