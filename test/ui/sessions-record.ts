/** Sessions and streams of the stand-in in `sessions-backend.ts`, with the sums that the recorder computes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DashboardSession, EventSummary } from '../../src/protocol/index.ts';

const shortChars = 200;
const heartbeatMs = 5_000;

/** An event as a test writes it; types that this version does not know are allowed. */
export interface EventInput {
  readonly type: string;
  /** Milliseconds since the epoch; default now. */
  readonly at?: number;
  readonly turnId?: string;
  readonly callId?: string;
  readonly tool?: string;
  readonly durationMs?: number;
  readonly data?: Record<string, unknown>;
}

const counters: Readonly<Record<string, keyof DashboardSession>> = {
  'turn.started': 'turnCount',
  thinking: 'thinkingCount',
  response: 'responseCount',
  'tool.started': 'toolCallCount',
  'tool.failed': 'toolFailureCount',
  'approval.requested': 'approvalCount',
  'context.compacted': 'compactionCount',
  error: 'errorCount',
  'model.failed': 'modelFailureCount',
};

/** One session: its events and their sums. */
export class Session {
  readonly events: EventSummary[] = [];
  readonly record: { -readonly [K in keyof DashboardSession]: DashboardSession[K] };

  constructor(sessionKey: string, facts: Partial<DashboardSession>) {
    const at = new Date().toISOString();
    this.record = {
      ...{ sessionKey, startedAt: at, lastActivityAt: at, durationMs: 0, totalTokens: 0, isRunning: false },
      ...{ turnCount: 0, failedTurnCount: 0, thinkingCount: 0, responseCount: 0, toolCallCount: 0 },
      ...{ toolFailureCount: 0, approvalCount: 0, compactionCount: 0, errorCount: 0, inputTokens: 0, outputTokens: 0 },
      ...{ cachedInputTokens: 0, reasoningTokens: 0, costUsd: 0, unpricedCount: 0, modelFailureCount: 0 },
      ...{ turnDurationMs: 0, toolDurationMs: 0, maxToolDurationMs: 0, approvalWaitMs: 0, pauseMs: 0, eventCount: 0 },
      ...facts,
    };
  }

  add(event: EventSummary): void {
    const { record } = this;
    if (this.events.length === 0) record.startedAt = event.at;
    this.events.push(event);
    record.eventCount += 1;
    record.lastActivityAt = event.at;
    record.durationMs = Math.max(0, Date.parse(event.at) - Date.parse(record.startedAt));
    const counter = counters[event.type];
    if (counter !== undefined) (record[counter] as number) += 1;
    this.#addTimes(event);
  }

  #addTimes({ type, durationMs = 0, data }: EventSummary): void {
    const { record } = this;
    if (type === ('turn.started' as string)) record.isRunning = true;
    if (type === 'turn.completed') {
      record.isRunning = false;
      record.lastStatus = String(data['status']);
      record.turnDurationMs += durationMs;
      if (data['status'] === 'failed') record.failedTurnCount += 1;
    }
    if (type === 'tool.completed' || type === 'tool.failed') {
      record.toolDurationMs += durationMs;
      record.maxToolDurationMs = Math.max(record.maxToolDurationMs, durationMs);
    }
    if (type === 'approval.completed') record.approvalWaitMs += durationMs;
    if (type === 'tokens.used') {
      record.inputTokens += Number(data['inputTokens']);
      record.outputTokens += Number(data['outputTokens']);
      record.cachedInputTokens += Number(data['cachedInputTokens'] ?? 0);
      record.costUsd += Number(data['costUsd'] ?? 0);
      if (data['costUsd'] === undefined) record.unpricedCount += 1;
      record.totalTokens = record.inputTokens + record.outputTokens;
    }
  }
}

/** Event stream with numbered, stored frames that can be resumed by id. */
export class Stream {
  readonly readers = new Set<ServerResponse>();
  refuses = false;
  /** First frames of every new connection. */
  begin: () => readonly string[] = () => [];
  #boot = 'a';
  #count = 0;
  #kept: { readonly id: string; readonly frame: string }[] = [];

  /** Sends records together, as a server does. */
  send(records: readonly (readonly [event: string, data: string])[]): void {
    const frames = records.map(([event, data]) => {
      this.#count += 1;
      const id = `${this.#boot}-${this.#count}`;
      const frame = `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
      this.#kept.push({ id, frame });
      return frame;
    });
    if (this.#kept.length > 20_000) this.#kept = this.#kept.slice(-10_000);
    for (const reader of this.readers) reader.write(frames.join(''));
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    if (this.refuses) {
      response.destroy();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const last = request.headers['last-event-id'];
    const at = this.#kept.findIndex(({ id }) => id === last);
    response.write(':\n\n');
    if (last === undefined) for (const frame of this.begin()) response.write(frame);
    else if (at >= 0) for (const { frame } of this.#kept.slice(at + 1)) response.write(frame);
    else response.write(`id: ${this.#boot}-${this.#count}\nevent: stream.gap\ndata: {}\n\n`);
    this.readers.add(response);
    // Like a server: a client takes a stream that is silent for long for dead, and connects again.
    const heartbeat = setInterval(() => response.write(':\n\n'), heartbeatMs);
    response.on('close', () => {
      clearInterval(heartbeat);
      this.readers.delete(response);
    });
  }

  /** Cuts every connection; `forget` also makes ids of before unknown, as after a restart. */
  cut({ forget = false, refuse = false } = {}): void {
    this.refuses = refuse;
    if (forget) {
      this.#boot += 'a';
      this.#kept = [];
    }
    for (const reader of this.readers) reader.destroy();
  }
}

function shortened(value: unknown, limit: number, mark: () => void): unknown {
  if (typeof value === 'string' && value.length > limit) {
    mark();
    return limit < shortChars ? '' : `${value.slice(0, limit)}…`;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => shortened(each, limit, mark));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortened(each, limit, mark)]));
}

/** Event as the API lists it: with short texts, without texts, or with full texts. */
export function listed(event: EventSummary, bodies: string): EventSummary {
  if (bodies === 'full') return event;
  let isShortened = false as boolean;
  const data = shortened(event.data, bodies === 'none' ? 32 : shortChars, () => {
    isShortened = true;
  });
  return { ...event, data: data as EventSummary['data'], ...(isShortened && { isShortened: true as const }) };
}
