import type { NewTraceEvent, TraceSession, TraceType } from '../../protocol/index.ts';

/** What is counted of a session; also the names of its columns. */
export const counters = [
  'turnCount',
  'thinkingCount',
  'responseCount',
  'toolCallCount',
  'toolFailureCount',
  'approvalCount',
  'errorCount',
  'inputTokens',
  'outputTokens',
  'eventCount',
] as const satisfies readonly (keyof TraceSession)[];
type Counter = (typeof counters)[number];

const countedBy: Partial<Record<TraceType, Counter>> = {
  'turn.started': 'turnCount',
  thinking: 'thinkingCount',
  response: 'responseCount',
  'tool.started': 'toolCallCount',
  'tool.failed': 'toolFailureCount',
  'approval.requested': 'approvalCount',
  error: 'errorCount',
};

/** What some events add to the row of their session. */
export class SessionChange {
  readonly counts: Record<Counter, number> = {
    turnCount: 0,
    thinkingCount: 0,
    responseCount: 0,
    toolCallCount: 0,
    toolFailureCount: 0,
    approvalCount: 0,
    errorCount: 0,
    inputTokens: 0,
    outputTokens: 0,
    eventCount: 0,
  };
  startedAt: string;
  lastActivityAt: string;
  displayName: string | undefined;
  channelName: string | undefined;

  constructor(at: string) {
    this.startedAt = at;
    this.lastActivityAt = at;
  }

  add({ type, at, data }: NewTraceEvent): void {
    if (at < this.startedAt) this.startedAt = at;
    if (at > this.lastActivityAt) this.lastActivityAt = at;
    this.counts.eventCount += 1;
    const counter = countedBy[type];
    if (counter) this.counts[counter] += 1;
    if (type === 'tokens.used') {
      this.counts.inputTokens += tokens(data['inputTokens']);
      this.counts.outputTokens += tokens(data['outputTokens']);
    }
    if (type === 'session.started') {
      this.displayName = text(data['displayName']) ?? this.displayName;
      this.channelName = text(data['channelName']) ?? this.channelName;
    }
  }
}

/** What a provider reported is not always a number of tokens. */
const tokens = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0);

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
