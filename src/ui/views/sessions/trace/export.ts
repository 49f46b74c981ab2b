import { threadName } from '../../../../protocol/browser.ts';
import type { DashboardSession, EventSummary } from '../../../../protocol/index.ts';
import { entryOf } from './entry.ts';
import { isTurn, type Span, type SpanKind, TraceModel, type Turn } from './model.ts';

/** Events as one JSON document per line, unchanged. */
export const toJsonLines = (events: readonly EventSummary[]): string =>
  events.map((event) => `${JSON.stringify(event)}\n`).join('');

/** One event of the Trace Event Format: times in microseconds. */
export interface ChromeEvent {
  readonly name: string;
  readonly cat: string;
  /** `X` complete, `i` instant, `M` metadata. */
  readonly ph: 'X' | 'i' | 'M';
  readonly ts: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
  readonly s?: 't';
  readonly args: Readonly<Record<string, unknown>>;
}

export interface ChromeTrace {
  readonly traceEvents: readonly ChromeEvent[];
  readonly displayTimeUnit: 'ms';
  readonly otherData: Readonly<Record<string, string>>;
}

const pid = 1;
type Track = readonly [first: number, title: string];
/** A track for each kind. Overlapping spans of a kind get further tracks, because slices of one track must not overlap. */
const tracks: Readonly<Partial<Record<SpanKind, Track>>> = {
  turn: [100, 'Turns'],
  request: [150, 'Requests'],
  thinking: [200, 'Thinking'],
  response: [300, 'Response'],
  tool: [400, 'Tools'],
  approval: [500, 'Waiting for a person'],
};
const moments: Track = [600, 'Moments'];
const trackOf = (kind: SpanKind): Track => tracks[kind] ?? moments;
/** Durations are whole milliseconds: a shorter overlap is ignored. */
const roundingMs = 1;

/**
 * A session as Chrome trace-event JSON, which Perfetto and the browser's own tools open (Trace Event Format, JSON object
 * form). Pure: the same events give the same text.
 * @param events oldest first, with their whole texts
 * @param now end of spans that have not ended, milliseconds since the epoch
 */
export function toChromeTrace(
  session: Pick<DashboardSession, 'sessionKey' | 'displayName'>,
  events: readonly EventSummary[],
  now: number,
): ChromeTrace {
  const model = new TraceModel();
  model.append(events.map(entryOf));
  const dataOf = new Map(events.map((event) => [event.id, event.data]));
  const lanes = new Lanes();
  const slices: ChromeEvent[] = [];
  const put = (span: Span) => {
    const end = span.end ?? Math.max(now, span.start);
    slices.push(slice(span, lanes.place(span.kind, span.start, end), dataOf));
  };
  for (const root of model.roots) {
    put(root);
    if (isTurn(root)) for (const child of root.children) put(child);
  }
  const title = threadName(session);
  return {
    traceEvents: [named('process_name', 0, title), ...lanes.names(), ...slices],
    displayTimeUnit: 'ms',
    otherData: { sessionKey: session.sessionKey, source: 'oratorio' },
  };
}

interface Lane {
  readonly tid: number;
  readonly start: number;
  readonly end: number;
}

/** Assigns different tracks to spans that overlap in time, as few as possible. */
class Lanes {
  readonly #until = new Map<SpanKind, number[]>();

  place(kind: SpanKind, start: number, end: number): Lane {
    const until = this.#until.get(kind) ?? [];
    this.#until.set(kind, until);
    const free = until.findIndex((each) => each <= start + roundingMs);
    const lane = free < 0 ? until.length : free;
    const from = Math.max(start, until[lane] ?? start);
    until[lane] = Math.max(from, end);
    return { tid: trackOf(kind)[0] + lane, start: from, end: Math.max(from, end) };
  }

  names(): ChromeEvent[] {
    return [...this.#until].flatMap(([kind, { length }]) => {
      const [first, title] = trackOf(kind);
      return Array.from({ length }, (_, lane) => [
        named('thread_name', first + lane, lane === 0 ? title : `${title} ${lane + 1}`),
        { ...named('thread_sort_index', first + lane, ''), args: { sort_index: first + lane } },
      ]).flat();
    });
  }
}

function slice(
  span: Span,
  { tid, start, end }: Lane,
  dataOf: ReadonlyMap<number, Record<string, unknown>>,
): ChromeEvent {
  const args = {
    ...(span.id > 0 && { event: span.id }),
    ...dataOf.get(span.id),
    ...(span.endId !== undefined && span.endId !== span.id && dataOf.get(span.endId)),
    ...(span.end === undefined && { open: true }),
    ...(isTurn(span) && counts(span)),
  };
  const common = { name: nameOf(span), cat: span.state === 'failed' ? `${span.kind},failed` : span.kind };
  const ts = start * 1000;
  if (span.kind === 'moment') return { ...common, ph: 'i', ts, pid, tid, s: 't', args };
  return { ...common, ph: 'X', ts, dur: (end - start) * 1000, pid, tid, args };
}

const counts = ({ thinking, responses, tools, failures, tokens }: Turn) => ({
  thinkingSegments: thinking,
  responseSegments: responses,
  toolCalls: tools,
  failures,
  ...(tokens > 0 && { tokens }),
});

function nameOf({ kind, tool, label }: Span): string {
  if (kind === 'tool') return tool ?? 'tool';
  if (kind === 'approval') return `approval: ${label}`;
  if (kind === 'request') return `request: ${label}`;
  return kind === 'turn' || kind === 'moment' ? label : kind;
}

const named = (name: string, tid: number, title: string): ChromeEvent => ({
  ...{ name, cat: '__metadata', ph: 'M', ts: 0, pid, tid },
  args: { name: title },
});
