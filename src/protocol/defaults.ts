const mebibyte = 1_048_576;
const frameBytes = 4 * mebibyte;

/**
 * Timeouts, limits and defaults that no user sets and that clients, documents or several rooms depend on. Units are in the
 * names. A part of `src/review` or `src/deploy` has its own in `limits.ts` or `defaults.ts`; a value that one file uses and
 * that no other file or document names is a constant of that file.
 */
export const defaults = {
  http: {
    headerBytes: 16_384,
    hubBodyBytes: mebibyte,
    chatBodyBytes: 32 * mebibyte,
    requestDeadlineMs: 30_000,
    /** Longer than start plus stop of a process, for which `ensure` waits. `stop` and `restart` also wait for turns. */
    longRequestDeadlineMs: 90_000,
    closeGraceMs: 500,
  },
  sse: { heartbeatMs: 15_000, retryMs: 2_000, bufferBytes: mebibyte, ringEvents: 4_096, ringBytes: 16 * mebibyte },
  /** Work on bytes of one peer, after which other work of the process has its turn. */
  reading: { busyMs: 10 },
  jsonRpc: { frameBytes, bufferedBytes: 16 * mebibyte, inFlightPerConnection: 32, openQuestions: 256 },
  /** Questions of MCP servers and external agents; more are closed at once. */
  questions: { openPerTurn: 8, perTurn: 50, answerChars: 10_000 },
  supervise: {
    /** Longest `Turns.HandOverSeconds`. */
    maxHandOverMs: 600_000,
    gracefulStopMs: 3_000,
    killVerifyMs: 5_000,
    /** Longest shutdown of the Hub after the time of the hand-over: a graceful stop, a forced one, and some slack. */
    drainDeadlineMs: 10_000,
    probeIntervalMs: 30_000,
    /** Pause after a failed probe, where that is shorter. */
    probeRetryMs: 3_000,
    /** Longest pause for which the connection of a probe stays open: servers close one that has no request for ten seconds. */
    probeKeepMs: 8_000,
    /** How often an agent server in use reports its health on the connection that a Hub keeps to its inbox, and how often an idle one. */
    healthEventMs: 5_000,
    idleHealthEventMs: 25_000,
    idleStopMinutes: 30,
    /** Delay of such a report, or of the heartbeat of that connection, after which the server is probed at once. */
    healthEventSlackMs: 2_000,
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
    /** Poll interval while a connection shows that the server lives. */
    adoptContactPollMs: 10_000,
    logBytes: 8 * mebibyte,
    /** Size limit of the launch document. */
    launchDocumentBytes: 262_144,
    recentStderrBytes: 16_384,
    portCooldownMs: 60_000,
  },
  hub: {
    /** How often `hub.lock` is checked where no file system event says that it changed. */
    addressCheckMs: 1_000,
    /** Pause between two publications of `hub.lock`. */
    addressRestMs: 250,
    /** Port of the first start of a Hub, and how many after it are tried before the system chooses one. */
    firstPort: 7717,
    portTries: 100,
    /** Shortest and longest `Retry-After` of the page of a workspace whose agent server is away. */
    retryAfterMs: 1_000,
    retryAfterMaxMs: 30_000,
    /** Bytes that wait for a slow page before its agent server is paused, and at which it resumes. */
    tunnelPauseBytes: mebibyte,
    tunnelResumeBytes: mebibyte / 4,
    /** Bytes that wait for a slow agent server before the WebSocket of a page is closed. */
    tunnelUpBytes: 8 * mebibyte,
    /** For the connection of a page's WebSocket to its agent server. */
    tunnelOpenMs: 10_000,
    /** Longest wait of a request for the start of a sleeping workspace, and requests that wait for one workspace. */
    wakeMs: 25_000,
    wakeWaiting: 256,
    /** A connection to a sleeping workspace that sends nothing for this long is closed. */
    wakeSilenceMs: 10_000,
  },
  apiProxy: { readyDeadlineMs: 15_000, readyPollMs: 100, requestTimeoutMs: 3_000 },
  client: {
    hubStartMs: 15_000,
    hubPollMs: 25,
    /** For the status of a Hub or agent server whose process lives: on a busy machine it takes seconds. */
    statusTimeoutMs: 10_000,
    /** For the answer to one JSON-RPC request, unless the caller gives a timeout. */
    requestMs: 30_000,
    /** Longest full pause before an event stream is connected again. */
    reconnectCapMs: 30_000,
    /** The proof by which a Hub was found covers a first request sent within this time. */
    proofMs: 1_000,
    /** For an agent server that cannot be reached: its Hub may not have noticed yet that it has ended. */
    reviveMs: 5_000,
    revivePollMs: 100,
    /** Silence of an agent server after which the client pings it and notifies the user. */
    silenceNoticeMs: 2_000,
    /** Silence after which the client closes the connection. */
    silenceDeadlineMs: 20_000,
    /** For the answer to an interrupt, which a healthy server gives at once. */
    interruptMs: 5_000,
  },
  agent: {
    /** Limits of AGENTS.md files, in bytes: user's and root's together, and each of a directory below. */
    instructions: { rootBytes: 32 * 1024, nestedBytes: 16 * 1024 },
    /** Identical calls with identical results in a row after which the next one is not run. */
    refusedRepeats: 12,
    /** Identical calls in a row, refused ones included, after which the turn ends. */
    stuckRepeats: 16,
    /** Texts and thoughts of the model in one turn; a turn with more fails. */
    turnTextBytes: 2 * mebibyte,
    /** Arguments of all calls of one turn, which may hold files. */
    turnArgumentBytes: 8 * mebibyte,
    /** Items of one turn. */
    turnItems: 20_000,
    /** Calls in one answer of the model. */
    answerCalls: 512,
    /** Turns on a page of a thread, unless the caller gives a number. */
    turnPage: 50,
    /** For a compaction that the user requested. */
    compactionMs: 120_000,
    dynamicToolCallMs: 120_000,
    /** A cancelled turn waits this long for its tools to end their processes. */
    cancelGraceMs: 5_000,
    /** Limit of one tool result for the model; limits of single tools are lower. */
    toolResultChars: 100_000,
    /** Limit of a command's output that its item stores. */
    commandOutputChars: 200_000,
    /** Time for which a sandbox may take to be ready. */
    sandboxStartMs: 10_000,
    /** Limits the capture of the environment of the login shell. */
    shellSetupMs: 10_000,
    /** Background processes of one thread that may run at a time. */
    maxBackgroundProcesses: 16,
    /** Ended ones of a thread that can still be read. */
    maxEndedProcesses: 16,
    /** Limit of one reading of a background process. */
    backgroundReadChars: 30_000,
    /** Time for which a new background process is watched before the call that started it returns. */
    backgroundStartMs: 1_000,
    /** Time in which output that has begun, or follows an input, is collected. */
    backgroundSettleMs: 250,
    /** Longest wait of one call for output. */
    maxOutputWaitMs: 60_000,
    traceBufferEvents: 20_000,
    traceFlushMs: 20,
    /** Limit of one text in a trace. */
    traceTextChars: 20_000,
    /** Largest transaction of traces: a few milliseconds of work, so that the event loop turns in between. */
    traceSliceEvents: 1_000,
    traceSliceChars: mebibyte,
    /** Pause after a failed write of traces. */
    traceRetryMs: 1_000,
    /** Events of deleted sessions that one step removes, and the pause after it. */
    traceSweepEvents: 500,
    traceSweepPauseMs: 10,
    /** Delay of the search index after the end of a turn, so that one commit covers several turns. */
    textIndexMs: 1_000,
    /** Wait for another writer of the database. Holding the workspace's lock, the server should be the only one. */
    storeBusyMs: 500,
    /** Pause between tries while another program holds the database, and how long the writes of turns wait for it. */
    storeRetryMs: 500,
    storeLockedMs: 60_000,
    /** Wait for another process that counts its spending. */
    ledgerBusyMs: 2_000,
    /** Size to which the write-ahead log is truncated after a burst of writes. */
    storeLogBytes: 16 * mebibyte,
    /** Pages in the write-ahead log that start a checkpoint: about SQLite's own threshold. */
    checkpointPages: 1_000,
    /** Pages at which SQLite checkpoints within a commit; checkpoints of ours come long before. */
    inlineCheckpointPages: 8_192,
    /** Wait for a running checkpoint when the store closes; the next start finishes a longer one. */
    checkpointCloseMs: 5_000,
    /** Time without a request after which the thread that saves files ends: its next start costs a tenth of a second. */
    fileCheckpointRestMs: 120_000,
  },
  upstream: {
    /** Limit of one event of a stream; a longer one is not from a model. */
    eventBytes: 4 * mebibyte,
    /** Limit of a whole answer that is not streamed, or of a list of models. */
    answerBytes: 32 * mebibyte,
    /** Bytes of a streamed answer: each token has a few hundred bytes around it. */
    streamBytes: 64 * mebibyte,
    errorBytes: 65_536,
    /** Interim answers (1xx) before the final one: a gateway may send 102 as a keep-alive for minutes. */
    interimAnswers: 1_000,
    /** Limit of an upstream's error text that our error quotes. */
    reasonChars: 500,
    /** Reasoning models may be silent for minutes. */
    idleMs: 300_000,
    retries: 8,
    /** Window of an unknown model, in tokens. */
    contextWindow: 128_000,
    /** An idle connection is closed after this time. */
    keptConnectionMs: 60_000,
    /** Time between the end of an answer and the end of its response. */
    drainMs: 1_000,
    apiKeyCommandMs: 30_000,
    /** Longest key that a command may print. */
    apiKeyChars: 16_384,
  },
  chat: {
    heartbeatMs: 10_000,
    /** A non-streaming answer that takes longer sends its headers and then newlines, because clients time out on silence. */
    trickleAfterMs: 15_000,
    trickleMs: 10_000,
    idempotencyMs: 600_000,
    idempotencyEntries: 1_000,
    maxMessages: 10_000,
    maxTools: 512,
    maxStopSequences: 4,
    /** Levels of JSON that is forwarded unchanged: schemas of tools and answers. */
    jsonDepth: 200,
    sessionIdChars: 512,
    idempotencyKeyChars: 255,
    /** Newest turns of a session that are compared with the conversation of a request. */
    lookBackTurns: 20,
    /** Waiting requests per session; more are answered 429. */
    waitingPerSession: 16,
    /** Limit of all finished answers that are stored for retries. */
    replayChars: 64 * mebibyte,
    /** Limit of arguments and output in an activity event. */
    previewChars: 500,
    /** Lifetime of a cached list of models. */
    modelsMs: 60_000,
    /** `Retry-After` of an answer 429. */
    retryAfterMs: 1_000,
    /** A turn that continues in a new agent server waits this long for its client. */
    resumedGraceMs: 60_000,
  },
  agui: {
    maxTools: 128,
    maxContextEntries: 100,
    /** Limit of one entry of context, or of the state. */
    contextChars: 20_000,
    /** Limit of all instructions together. */
    instructionChars: 60_000,
    /** Limit of an id that the client chose. */
    idChars: 512,
    /** A turn continues this long after its client disconnected. */
    disconnectGraceMs: 5_000,
    /** A turn that continues in a new agent server waits this long for its client. */
    resumedGraceMs: 60_000,
  },
  acp: {
    /** Limit of one message of the editor. */
    messageBytes: 32 * mebibyte,
    /** Limit of a prompt: a frame of the agent server holds no more. */
    promptBytes: frameBytes - 65_536,
    /** Unread messages that wait for the editor. */
    unreadMessages: 10_000,
    /** Shown end of a running command's output, and the interval of its updates. */
    outputChars: 20_000,
    outputMs: 200,
    /** Limit of a tool's result, and of each side of a diff. */
    contentChars: 100_000,
    /** Wait for running turns after the editor disconnected. */
    leaveMs: 2_000,
    sessionsPerPage: 100,
    /** Limits of the MCP servers of one session: all of them, and arguments, variables or headers of one. */
    serverBytes: 262_144,
    serverWords: 500,
    /** Longest start of these servers. */
    serverStartMs: 120_000,
  },
  externalAgent: {
    /** Agents of some makers take over 20 s to introduce themselves on a busy machine. */
    handshakeMs: 60_000,
    /** From the end of its input to SIGKILL. */
    closeGraceMs: 2_500,
    /** From the cancellation of a prompt to its end. */
    cancelGraceMs: 5_000,
    /** Interval at which the processes below a working agent are read. */
    watchMs: 1_000,
    /** Between SIGTERM and SIGKILL for remaining processes of a dead agent's group. */
    sweepGraceMs: 500,
    /** For reading the pipes of an agent that has exited. */
    drainMs: 2_000,
    /** Time for the exit of an agent that has closed its standard output. */
    exitWaitMs: 5_000,
    /** Limit of one message, and of the input that the agent has not read. */
    lineBytes: 16 * mebibyte,
    /** Limit of all messages of one turn: agents repeat the output of a command with each update. */
    turnBytes: 128 * mebibyte,
    /** Calls of one turn without an end. */
    openCalls: 512,
    stderrBytes: 8_192,
    /** Limit of standard error that an error text quotes. */
    quotedStderrChars: 1_000,
    errorChars: 500,
    /** An answered permission covers the write that follows it. */
    grantMs: 60_000,
    /** Requests of a turn for files that wait. */
    fileRequests: 64,
    /** Terminals of a turn that were not released. */
    terminals: 32,
    /** Stored end of a terminal's output. */
    terminalBytes: mebibyte,
    /** Models and commands of an agent that are shown, and characters of each of their words. */
    offers: 200,
    offerChars: 200,
    /** Limits of the telemetry that it exports to us. */
    telemetry: {
      bodyBytes: mebibyte,
      /** Limit of a gzip body after inflation. */
      inflatedBytes: 4 * mebibyte,
      /** Limit of one request. */
      records: 5_000,
      concurrentRequests: 4,
      requestsPerSecond: 50,
      /** Requests to a model that a turn has in its trace. */
      turnRequests: 10_000,
      /** After the end of a turn, for its trace. */
      lateMs: 30_000,
      /** At most, for a turn that has no other count. */
      waitMs: 2_000,
      closeGraceMs: 100,
    },
  },
  mcp: {
    /** From the end of a server's input to SIGTERM, and from there to SIGKILL: together less than our own stop may take. */
    closeGraceMs: 500,
    gracefulStopMs: 1_000,
    /** Between SIGTERM and SIGKILL for the process group of a dead server. */
    sweepGraceMs: 500,
    /** A server on pipes that has not answered `server/discover` by then speaks the older protocol. At most half of its start-up time. */
    probeMs: 10_000,
    /** For one request about a task of a server. */
    taskRequestMs: 30_000,
    /** Pause before a subscription that the server ended is renewed. */
    resubscribeMs: 1_000,
    /** For reading the pipes of a server that has exited. */
    drainMs: 100,
    /** Limit of one message of a server. */
    messageBytes: 16 * mebibyte,
    /** Messages of one server that are read in the long run, and without a pause. */
    messagesPerSecond: 500,
    messagesAtOnce: 2_000,
    /** Messages in one answer, as an older version of the protocol has them. */
    batchMessages: 100,
    /** A request of a server over HTTP counts as this many messages: its answer is a request of ours. */
    messagesPerRequest: 20,
    /** Answers to requests of one server that wait for it to read. */
    unreadAnswers: 1_000,
    stderrBytes: 8_192,
    /** Limit of standard error that an error text quotes. */
    quotedStderrChars: 1_000,
    errorChars: 500,
    /** Servers that a client brings for one conversation. */
    threadServers: 32,
    /** Limit for one server. */
    maxTools: 512,
    /** Prompts of one server that are commands, and resources that one message may name. */
    maxPrompts: 100,
    maxMentions: 8,
    /** For the list of the prompts of a server, and for one prompt or resource. */
    referenceMs: 15_000,
    /** Pages of one list of a server; fewer than the library reads. */
    maxPages: 50,
    /** Tools of one server whose problems are listed. */
    maxToolProblems: 20,
    /** Longest name that models accept. */
    toolNameChars: 64,
    descriptionChars: 4_000,
    resultChars: 50_000,
    images: 8,
    /** Limit of all images of one result, in base64. */
    imageChars: 8 * mebibyte,
    oauth: {
      /** For one request to an authorization server. */
      requestMs: 30_000,
      /** Limit of one answer of an authorization server. */
      answerBytes: mebibyte / 4,
      /** For the user, from the start of a log-in to its end in the browser. */
      loginMs: 10 * 60_000,
      /** For another process that renews or stores the same token. */
      lockMs: 60_000,
    },
  },
  inspect: { ringRecords: 4_096, actorRingRecords: 64, endedActors: 100, coalesceMs: 16, actorBytes: 10 * 1_024 },
  dashboard: {
    sessionsPerPage: 100,
    maxSessionsPerPage: 500,
    eventsPerPage: 1_000,
    maxEventsPerPage: 5_000,
    recentEvents: 20,
    /** Limit of a text in a list of events; the page fetches the whole text when it is opened. */
    shortTextChars: 200,
    /** From which a stream is resumed; older events are read from the database. */
    ringEvents: 16_384,
    ringBytes: 16 * mebibyte,
    streamBufferBytes: 4 * mebibyte,
    /** Frames of this time are sent together. */
    coalesceMs: 16,
    /** Deltas of one answer within this time come to a page as one: a frame costs a tab more than its content. */
    mergeDeltasMs: 50,
    logLines: 2_000,
    loginTtlMs: 43_200_000,
    logins: 100,
    /** Wrong passwords in a row after which log-in is paused, and the first and the longest pause. */
    loginFailures: 5,
    loginPauseMs: 1_000,
    loginPauseMaxMs: 60_000,
    configBytes: 262_144,
  },
  automations: {
    /** Interval at which the wall clock is read: sleep, a changed clock or daylight saving cannot hide a due time. */
    tickMs: 30_000,
    /** Due times this close are handled together. */
    slackMs: 5,
    maxAutomations: 20_000,
    runsPerAutomation: 200,
    recentRuns: 20,
    upcoming: 5,
    resultChars: 500,
    /** A run of a killed process is repeated when it is not older than this. */
    resumeWithinMs: 3_600_000,
  },
  tracing: {
    sweepEveryMs: 3_600_000,
    /** Pages of the database that one step returns to the file system. */
    vacuumPages: 256,
  },
  cli: { liveTestMs: 60_000, refreshMs: 60_000, refreshBytes: 20_000_000 },
  telemetry: {
    flushMs: 800,
    queueSpans: 2_048,
    batchSpans: 512,
    delayMs: 2_000,
    exportTimeoutMs: 10_000,
    /** Turns that a request can still be added to once they have ended. */
    endedTurns: 200,
  },
} as const;
