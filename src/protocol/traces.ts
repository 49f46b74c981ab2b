/** Traces: work of a session by segment (specification §2.8, design §6). A session is a thread seen by a debugger. */
import * as v from 'valibot';

export const traceTypes = [
  'session.started',
  'session.completed',
  'turn.started',
  'turn.resumed',
  'turn.suspended',
  'turn.completed',
  'thinking',
  'response',
  'tool.started',
  'tool.completed',
  'tool.failed',
  'approval.requested',
  'approval.completed',
  'tokens.used',
  'context.compacted',
  'model.failed',
  'model.replaced',
  'error',
] as const;
export type TraceType = (typeof traceTypes)[number];

export const TraceEvent = v.object({
  /** Counts up through the workspace; assigned by the store. */
  id: v.number(),
  sessionKey: v.string(),
  type: v.picklist(traceTypes),
  at: v.string(),
  turnId: v.optional(v.string()),
  itemId: v.optional(v.string()),
  callId: v.optional(v.string()),
  tool: v.optional(v.string()),
  durationMs: v.optional(v.number()),
  /** Depends on the type: `text`, `arguments`, `result`, `decision`, `inputTokens` … Bounded; secrets are taken out. */
  data: v.record(v.string(), v.unknown()),
});
export type TraceEvent = v.InferOutput<typeof TraceEvent>;
/** Input of the store. */
export type NewTraceEvent = Omit<TraceEvent, 'id'>;

/** Counters of one session; thinking and response count segments, not chunks (specification §2.8). */
export const TraceSession = v.object({
  sessionKey: v.string(),
  startedAt: v.string(),
  lastActivityAt: v.string(),
  displayName: v.optional(v.string()),
  /** First input, shortened: the name of a session without one. */
  firstInput: v.optional(v.string()),
  channelName: v.optional(v.string()),
  /** The session that this one is a sub-agent of. */
  parentSessionKey: v.optional(v.string()),
  /** Model of the last request. */
  model: v.optional(v.string()),
  /** End of the last turn; `running` while one runs. */
  lastStatus: v.optional(v.string()),
  turnCount: v.number(),
  failedTurnCount: v.number(),
  thinkingCount: v.number(),
  responseCount: v.number(),
  toolCallCount: v.number(),
  toolFailureCount: v.number(),
  approvalCount: v.number(),
  compactionCount: v.number(),
  errorCount: v.number(),
  inputTokens: v.number(),
  outputTokens: v.number(),
  /** Input tokens that came from the provider's cache. */
  cachedInputTokens: v.number(),
  /** Output tokens of reasoning. */
  reasoningTokens: v.number(),
  /** Sum of the known costs, in US dollars. */
  costUsd: v.number(),
  /** Answered requests whose cost is unknown. */
  unpricedCount: v.number(),
  /** Failed requests to a model, also those that were repeated. */
  modelFailureCount: v.number(),
  /** Sums, in milliseconds. Turns of one session do not overlap, so theirs is the time that users waited. */
  turnDurationMs: v.number(),
  toolDurationMs: v.number(),
  maxToolDurationMs: v.number(),
  /** Time in which the agent waited for a person. */
  approvalWaitMs: v.number(),
  /** Time between a failed request to a model and its repetition. */
  pauseMs: v.number(),
  eventCount: v.number(),
});
export type TraceSession = v.InferOutput<typeof TraceSession>;

/** Sums of all sessions: the counts of `TraceSession`, and the number of sessions. */
export const TraceTotals = v.object({
  sessionCount: v.number(),
  turnCount: v.number(),
  failedTurnCount: v.number(),
  thinkingCount: v.number(),
  responseCount: v.number(),
  toolCallCount: v.number(),
  toolFailureCount: v.number(),
  approvalCount: v.number(),
  compactionCount: v.number(),
  errorCount: v.number(),
  inputTokens: v.number(),
  outputTokens: v.number(),
  cachedInputTokens: v.number(),
  reasoningTokens: v.number(),
  costUsd: v.number(),
  unpricedCount: v.number(),
  modelFailureCount: v.number(),
  turnDurationMs: v.number(),
  toolDurationMs: v.number(),
  maxToolDurationMs: v.number(),
  approvalWaitMs: v.number(),
  pauseMs: v.number(),
  eventCount: v.number(),
});
export type TraceTotals = v.InferOutput<typeof TraceTotals>;
