import type { NewTraceEvent, TraceTotals, TraceType } from '../../protocol/index.ts';

/** Counters of a session, which are summed for all sessions; also the names of the columns. */
export const sums = [
  'turnCount',
  'failedTurnCount',
  'thinkingCount',
  'responseCount',
  'toolCallCount',
  'toolFailureCount',
  'approvalCount',
  'compactionCount',
  'errorCount',
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'reasoningTokens',
  'costUsd',
  'unpricedCount',
  'modelFailureCount',
  'turnDurationMs',
  'toolDurationMs',
  'approvalWaitMs',
  'pauseMs',
  'eventCount',
] as const satisfies readonly (keyof TraceTotals)[];
type Sum = (typeof sums)[number];

/** All numbers of a session. */
export const counters = [...sums, 'maxToolDurationMs'] as const;
export type Counts = Record<(typeof counters)[number], number>;

/** Facts that distinguish a session; unknown until an event states them. */
export const facts = ['displayName', 'firstInput', 'channelName', 'parentSessionKey', 'model', 'lastStatus'] as const;
type Facts = Partial<Record<(typeof facts)[number], string>>;

const zero = Object.fromEntries(counters.map((name) => [name, 0])) as Counts;

export const noCounts = (): Counts => ({ ...zero });

export function addCounts(counts: Counts, more: Readonly<Counts>): void {
  for (const name of sums) counts[name] += more[name];
  counts.maxToolDurationMs = Math.max(counts.maxToolDurationMs, more.maxToolDurationMs);
}

/** SQL that adds one number to another column by column: the longest of two is the longer. */
export const plus = (name: (typeof counters)[number], more: string): string =>
  name === 'maxToolDurationMs' ? `max(${name}, ${more})` : `${name} + ${more}`;

const countedBy: Partial<Record<TraceType, Sum>> = {
  'turn.started': 'turnCount',
  thinking: 'thinkingCount',
  response: 'responseCount',
  'tool.started': 'toolCallCount',
  'approval.requested': 'approvalCount',
  'context.compacted': 'compactionCount',
  error: 'errorCount',
  'model.failed': 'modelFailureCount',
};

const timedBy: Partial<Record<TraceType, Sum>> = {
  'turn.completed': 'turnDurationMs',
  'tool.completed': 'toolDurationMs',
  'tool.failed': 'toolDurationMs',
  'approval.completed': 'approvalWaitMs',
};

/** Change of a session's row by some events. */
export class SessionChange {
  readonly counts = noCounts();
  readonly facts: Facts = {};
  startedAt: string;
  lastActivityAt: string;

  constructor(at: string) {
    this.startedAt = at;
    this.lastActivityAt = at;
  }

  add({ type, at, durationMs, data }: NewTraceEvent): void {
    if (at < this.startedAt) this.startedAt = at;
    if (at > this.lastActivityAt) this.lastActivityAt = at;
    this.counts.eventCount += 1;
    const counter = countedBy[type];
    if (counter) this.counts[counter] += 1;
    const timer = timedBy[type];
    if (timer) this.#time(timer, whole(durationMs));
    learned[type]?.(this, data);
  }

  #time(timer: Sum, ms: number): void {
    this.counts[timer] += ms;
    if (timer === 'toolDurationMs') this.counts.maxToolDurationMs = Math.max(this.counts.maxToolDurationMs, ms);
  }
}

const learned: Partial<Record<TraceType, (change: SessionChange, data: NewTraceEvent['data']) => void>> = {
  'session.started'({ facts }, { displayName, channelName, parentThreadId }) {
    know(facts, 'displayName', displayName);
    know(facts, 'channelName', channelName);
    know(facts, 'parentSessionKey', parentThreadId);
  },
  'turn.started'({ facts }, { text }) {
    // The first input with a text: a turn may begin with results of tools only.
    if (facts.firstInput === undefined) know(facts, 'firstInput', text);
    facts.lastStatus = 'running';
  },
  'turn.completed'({ facts, counts }, { status }) {
    facts.lastStatus = typeof status === 'string' ? status : 'completed';
    if (status === 'failed') counts.failedTurnCount += 1;
  },
  'tokens.used'({ facts, counts }, data) {
    counts.inputTokens += whole(data['inputTokens']);
    counts.outputTokens += whole(data['outputTokens']);
    counts.cachedInputTokens += whole(data['cachedInputTokens']);
    counts.reasoningTokens += whole(data['reasoningTokens']);
    counts.pauseMs += whole(data['pausedMs']);
    const { costUsd, model } = data;
    if (typeof costUsd === 'number' && Number.isFinite(costUsd)) counts.costUsd += Math.max(0, costUsd);
    else counts.unpricedCount += 1;
    know(facts, 'model', model);
  },
  // A declined call has not failed: nothing ran.
  'tool.failed'({ counts }, { outcome }) {
    if (outcome !== 'declined') counts.toolFailureCount += 1;
  },
  'model.failed'({ counts }, data) {
    counts.pauseMs += whole(data['pausedMs']);
  },
};

function know(facts: Facts, fact: keyof Facts, value: unknown): void {
  if (typeof value === 'string' && value !== '') facts[fact] = value;
}

/** Makes a whole number of a reported value, which may be of any type. */
function whole(value: unknown): number {
  const rounded = Math.round(Number(value));
  return typeof value === 'number' && Number.isSafeInteger(rounded) ? Math.max(0, rounded) : 0;
}
