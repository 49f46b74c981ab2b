import { isFailed, type TraceEntry } from './entry.ts';

/** Kind of a bar. A `moment` has a time and no duration. `round` and `calls` consist of other bars. */
export type SpanKind =
  | 'turn'
  | 'round'
  | 'calls'
  | 'request'
  | 'thinking'
  | 'response'
  | 'tool'
  | 'approval'
  | 'moment';
/** `open`: it began, and no end was received. */
export type SpanState = 'open' | 'done' | 'failed';

/** One bar: begins and ends with one event or two. */
export interface Span {
  readonly kind: SpanKind;
  /** Id of the event that began it, for links. Below zero: no beginning was received. */
  readonly id: number;
  /** Id of the event that ended it. */
  endId: number | undefined;
  readonly turn: Turn | undefined;
  /** Event type of a moment, decision of an approval, or model of a request. */
  label: string;
  readonly tool: string | undefined;
  readonly callId: string | undefined;
  /** Milliseconds since the epoch. */
  start: number;
  end: number | undefined;
  state: SpanState;
  /** Input (arguments, question), or the text of a segment. */
  text: string;
  /** Output: a result, a decision. */
  outcome: string;
  isShortened: boolean;
  tokens: number;
  /** Sum of the known costs, in US dollars. */
  costUsd: number;
  /** Whether a rule decided about the call. */
  isByRule: boolean;
  /** Index among the shown rows; -1: not shown. */
  row: number;
}

export interface Turn extends Span {
  readonly kind: 'turn';
  readonly turnId: string;
  readonly children: Span[];
  readonly approvals: Span[];
  thinking: number;
  responses: number;
  tools: number;
  failures: number;
}

/**
 * A session as bars: turns with their segments, tool calls and approvals. Events are added in the order of their ids, in
 * batches of any size, at a constant cost per event. Bars are changed in place.
 */
export class TraceModel {
  /** Every event, oldest first. */
  readonly entries: TraceEntry[] = [];
  /** Turns, and the spans outside turns. */
  readonly roots: Span[] = [];
  start = Number.POSITIVE_INFINITY;
  end = Number.NEGATIVE_INFINITY;
  /** A recorder of an earlier version did not distinguish segments and calls: bars stand for more than one. */
  isCoarse = false;
  readonly #isCut: boolean;
  readonly #turns = new Map<string, Turn>();
  readonly #open = new Map<string, Span>();
  readonly #byEvent = new Map<number, Span>();
  #unnamed = 0;

  /** @param isCut the session is loaded from the middle: missing earlier events say nothing about the recorder */
  constructor(isCut = false) {
    this.#isCut = isCut;
  }

  get lastId(): number {
    return this.entries.at(-1)?.id ?? 0;
  }

  turnCount = 0;
  failures = 0;

  /** Adds the events that are newer than the last one; the others are known already. @returns number of new events */
  append(entries: readonly TraceEntry[]): number {
    let count = 0;
    for (const entry of entries) {
      if (entry.id <= this.lastId) continue;
      this.entries.push(entry);
      this.#extend(entry.at - (entry.durationMs ?? 0), entry.at);
      (steps[entry.type] ?? steps['moment'])?.(this.#builder, entry);
      count += 1;
    }
    return count;
  }

  /** The bar that an event belongs to. */
  spanOf(id: number): Span | undefined {
    return this.#byEvent.get(id);
  }

  #extend(from: number, to: number): void {
    if (from < this.start) this.start = from;
    if (to > this.end) this.end = to;
  }

  readonly #builder: Builder = {
    turn: (entry) => this.#turn(entry),
    begin: (kind, entry) => {
      const span = this.#add(kind, entry, entry.at, undefined, 'open');
      this.#open.set(keyOf(kind, entry), span);
      return span;
    },
    end: (kind, entry, state) => {
      const key = keyOf(kind, entry);
      let span = this.#open.get(key);
      this.#open.delete(key);
      if (!span) {
        this.isCoarse ||= kind === 'tool' && !this.#isCut;
        span = this.#add(kind, entry, entry.at - (entry.durationMs ?? 0), undefined, 'open');
        span.text = '';
      }
      this.#byEvent.set(entry.id, span);
      Object.assign(span, { endId: entry.id, end: entry.at, state, outcome: entry.text });
      span.isShortened ||= entry.isShortened;
      return span;
    },
    whole: (kind, entry, state) => {
      if (kind !== 'moment' && entry.durationMs === undefined) this.isCoarse = true;
      return this.#add(kind, entry, entry.at - (entry.durationMs ?? 0), entry.at, state);
    },
    file: (entry, span) => this.#byEvent.set(entry.id, span),
    failed: (turn) => {
      this.failures += 1;
      if (turn) turn.failures += 1;
    },
  };

  #add(
    kind: Exclude<SpanKind, 'turn' | 'round' | 'calls'>,
    entry: TraceEntry,
    start: number,
    end: number | undefined,
    state: SpanState,
  ): Span {
    const turn = entry.turnId === undefined ? undefined : this.#turn(entry);
    const { id, tool, callId, text, isShortened, tokens, costUsd, isByRule, type: label } = entry;
    const span: Span = {
      ...{ kind, id, endId: undefined, turn, label, tool, callId, start, end, state },
      ...{ text, outcome: '', isShortened, tokens, costUsd, isByRule, row: -1 },
    };
    this.#byEvent.set(id, span);
    if (turn) insertInOrder(turn.children, span);
    else this.roots.push(span);
    if (kind === 'approval') turn?.approvals.push(span);
    return span;
  }

  /** The turn of an event; a turn without a beginning starts with its first event. */
  #turn({ turnId = '', at, durationMs = 0, id, type, text, isShortened }: TraceEntry): Turn {
    const known = this.#turns.get(turnId);
    if (known) return known;
    const isStart = type === 'turn.started';
    if (!isStart) {
      this.isCoarse ||= !this.#isCut;
      this.#unnamed += 1;
    }
    const turn: Turn = {
      ...{ kind: 'turn', id: isStart ? id : -this.#unnamed, turnId, endId: undefined, turn: undefined, label: turnId },
      ...{ tool: undefined, callId: undefined, isByRule: false, row: -1 },
      ...{ start: at - (isStart ? 0 : durationMs), end: undefined, state: 'open' },
      ...{ text: isStart ? text : '', outcome: '', isShortened, children: [], approvals: [] },
      ...{ thinking: 0, responses: 0, tools: 0, failures: 0, tokens: 0, costUsd: 0 },
    };
    this.#turns.set(turnId, turn);
    this.roots.push(turn);
    this.turnCount += 1;
    return turn;
  }
}

const keyOf = (kind: SpanKind, { turnId, callId, tool }: TraceEntry): string => `${kind} ${turnId} ${callId ?? tool}`;

/** Operations of a step on the model. */
interface Builder {
  turn(entry: TraceEntry): Turn;
  begin(kind: 'tool' | 'approval', entry: TraceEntry): Span;
  end(kind: 'tool' | 'approval', entry: TraceEntry, state: SpanState): Span;
  whole(kind: 'request' | 'thinking' | 'response' | 'moment', entry: TraceEntry, state: SpanState): Span;
  file(entry: TraceEntry, span: Span): void;
  failed(turn: Turn | undefined): void;
}

/** Effect of each type of event. Any other type is a moment of its own. */
const steps: Readonly<Record<string, (builder: Builder, entry: TraceEntry) => void>> = {
  'turn.started': (builder, entry) => builder.file(entry, builder.turn(entry)),
  'turn.completed': (builder, entry) => {
    const turn = builder.turn(entry);
    const state = isFailed(entry) ? 'failed' : 'done';
    const start = turn.id < 0 ? entry.at - (entry.durationMs ?? 0) : turn.start;
    Object.assign(turn, { endId: entry.id, end: entry.at, start: Math.min(start, turn.start), state });
    turn.outcome = entry.text;
    if (state === 'failed') builder.failed(turn);
    builder.file(entry, turn);
    closeOpen(turn);
  },
  thinking: (builder, entry) => {
    const { turn } = builder.whole('thinking', entry, 'done');
    if (turn) turn.thinking += 1;
  },
  response: (builder, entry) => {
    const { turn } = builder.whole('response', entry, 'done');
    if (turn) turn.responses += 1;
  },
  'tool.started': (builder, entry) => countTool(builder.begin('tool', entry)),
  'tool.completed': (builder, entry) => countTool(builder.end('tool', entry, 'done')),
  'tool.failed': (builder, entry) => {
    const span = builder.end('tool', entry, 'failed');
    countTool(span);
    builder.failed(span.turn);
  },
  'approval.requested': (builder, entry) => {
    builder.begin('approval', entry).label = 'waiting';
  },
  'approval.completed': (builder, entry) => {
    const span = builder.end('approval', entry, 'done');
    span.label = entry.status ?? 'decided';
    span.isByRule = entry.isByRule;
  },
  'tokens.used': (builder, entry) => {
    if (entry.turnId === undefined) builder.whole('moment', entry, 'done');
    else {
      const turn = builder.turn(entry);
      turn.tokens += entry.tokens;
      turn.costUsd += entry.costUsd;
      // Earlier recorders did not time requests.
      if (entry.durationMs === undefined) builder.file(entry, turn);
      else builder.whole('request', entry, 'done').label = entry.model ?? 'model';
    }
  },
  'model.failed': (builder, entry) => {
    const request = builder.whole('request', entry, 'failed');
    request.label = entry.model ?? 'model';
    builder.failed(request.turn);
  },
  error: (builder, entry) => builder.failed(builder.whole('moment', entry, 'failed').turn),
  moment: (builder, entry) => {
    builder.whole('moment', entry, 'done');
  },
};

/** Once for every call, whichever of its events came first. */
function countTool(span: Span): void {
  const isFirst = span.endId === undefined || span.endId === span.id;
  if (isFirst && span.turn) span.turn.tools += 1;
}

/** Bars that a turn began and did not end are ended with it. */
function closeOpen(turn: Turn): void {
  for (const span of turn.children) if (span.end === undefined) span.end = turn.end;
}

export const isTurn = (span: Span): span is Turn => span.kind === 'turn';

/** Length of a bar, up to `now` while it is open. */
export function lengthOf(span: Span, now: number): number {
  return Math.max(0, (span.end ?? now) - span.start);
}

/** Milliseconds of a turn in which it waited for a person: waits that overlap count once. */
export function humanMs(turn: Turn, now: number): number {
  const waits = turn.approvals.map((span) => [span.start, span.end ?? turn.end ?? now] as const);
  let sum = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const [from, to] of waits.sort(([a], [b]) => a - b)) {
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
}

/** Inserts a span by its beginning; an event of a request is stored at its end, after the events of its parts. */
function insertInOrder(spans: Span[], span: Span): void {
  let at = spans.length;
  for (let before = spans[at - 1]; before && isAfter(before, span); before = spans[at - 1]) at -= 1;
  spans.splice(at, 0, span);
}

const isAfter = (one: Span, other: Span): boolean =>
  one.start > other.start || (one.start === other.start && other.kind === 'request' && one.kind !== 'request');
