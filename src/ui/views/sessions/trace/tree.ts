import { isTurn, type Span, type Turn } from './model.ts';

/** Bar that consists of others: a round of a turn, or a run of equal calls. */
interface Group extends Span {
  readonly children: Span[];
}

/** A request and all bars until the next request. */
interface Round extends Group {
  readonly kind: 'round';
  readonly number: number;
}

/** Minimum number of consecutive equal calls that share one row. */
const runLength = 4;

/** Children and parent of each bar of a turn. Rebuilt whenever the bars of the turn change. */
export class TraceTree {
  readonly #children = new Map<Span, readonly Span[]>();
  readonly #parents = new Map<Span, Span>();
  readonly #groups = new Map<number, Span>();
  /** Bars of ended turns at the last read. */
  readonly #done = new Map<Turn, number>();

  /** Reads a turn again, unless it has ended and is unchanged. */
  read(turn: Turn): void {
    if (this.#done.get(turn) === turn.children.length) return;
    if (turn.end !== undefined) this.#done.set(turn, turn.children.length);
    this.#below(turn, turn.children.some(({ kind }) => kind === 'request') ? this.#rounds(turn) : callsOf(turn));
  }

  childrenOf(span: Span): readonly Span[] {
    return this.#children.get(span) ?? [];
  }

  parentOf(span: Span): Span | undefined {
    return this.#parents.get(span);
  }

  /** Returns a group by its id, which is half a step after the id of its first event. */
  groupOf(id: number): Span | undefined {
    return this.#groups.get(id);
  }

  #rounds(turn: Turn): Span[] {
    const rounds: Round[] = [];
    for (const span of callsOf(turn)) {
      const last = rounds.at(-1);
      const round = last && !beginsRound(span, last) ? last : newRound(span, turn, rounds.length + 1);
      if (round !== last) rounds.push(round);
      round.children.push(span);
    }
    for (const round of rounds) {
      this.#below(round, this.#runs(insideRequests(round.children, (request, parts) => this.#below(request, parts))));
      sum(round, round.children);
      this.#groups.set(round.id, round);
    }
    return rounds;
  }

  #runs(spans: readonly Span[]): Span[] {
    const rows: Span[] = [];
    for (let from = 0, to = 0; from < spans.length; from = to) {
      const first = spans[from];
      if (!first) break;
      to = from + 1;
      while (first.kind === 'tool' && spans[to]?.kind === 'tool' && spans[to]?.tool === first.tool) to += 1;
      const run = spans.slice(from, to);
      if (run.length < runLength) rows.push(...run);
      else rows.push(this.#run(first, run));
    }
    return rows;
  }

  #run(first: Span, children: Span[]): Group {
    const group: Group = { ...first, kind: 'calls', id: first.id + 0.5, endId: undefined, children, isByRule: false };
    sum(group, children);
    this.#groups.set(group.id, group);
    this.#below(group, children);
    return group;
  }

  #below(span: Span, children: readonly Span[]): void {
    this.#children.set(span, children);
    for (const child of children) this.#parents.set(child, span);
  }
}

/** Bars of a turn, without approvals by a rule, which are marks on their calls. */
function callsOf({ children }: Turn): Span[] {
  const ruled = new Set(
    children.flatMap(({ kind, isByRule, callId }) => (kind === 'approval' && isByRule ? callId : [])),
  );
  for (const span of children) if (span.kind === 'tool') span.isByRule = ruled.has(span.callId);
  return children.filter(({ kind, isByRule }) => kind !== 'approval' || !isByRule);
}

/** Whether a bar starts a round: a request after an answered one, or thinking or text after a call, whose request event comes last. */
function beginsRound({ kind }: Span, { children }: Round): boolean {
  if (kind === 'request') return children.some((each) => each.kind === 'request' && each.state === 'done');
  return (kind === 'thinking' || kind === 'response') && children.some((each) => each.kind === 'tool');
}

const newRound = (first: Span, turn: Turn, number: number): Round => ({
  ...first,
  ...{ kind: 'round', id: first.id + 0.5, endId: undefined, turn, number, children: [], label: '', tool: undefined },
  ...{ callId: undefined, text: '', outcome: '', isByRule: false },
});

/** Removes thinking and text inside a request, and passes both to `put` with the request. */
function insideRequests(spans: readonly Span[], put: (request: Span, parts: readonly Span[]) => void): Span[] {
  const rows: Span[] = [];
  const inside = new Map<Span, Span[]>();
  // Times are rounded, so thinking may seem to start before its request.
  let request = spans.find(({ kind }) => kind === 'request');
  for (const span of spans) {
    if (span.kind === 'request') request = span;
    const isPart = span.kind === 'thinking' || span.kind === 'response';
    if (request && isPart && span.start <= (request.end ?? span.start)) {
      inside.set(request, [...(inside.get(request) ?? []), span]);
    } else rows.push(span);
  }
  for (const [span, parts] of inside) put(span, parts);
  return rows;
}

/** Time, tokens and cost of a group. */
function sum(group: Span, children: readonly Span[]): void {
  const isOpen = children.some(({ end }) => end === undefined);
  const requests = children.filter(({ kind }) => kind === 'request');
  group.start = Math.min(...children.map(({ start }) => start));
  group.end = isOpen ? undefined : Math.max(...children.map(({ end = 0 }) => end));
  group.tokens = children.reduce((all, { tokens }) => all + tokens, 0);
  group.costUsd = children.reduce((all, { costUsd }) => all + costUsd, 0);
  const isLost = requests.length > 0 && requests.every(({ state }) => state === 'failed');
  group.state = isOpen ? 'open' : isLost ? 'failed' : 'done';
}

export const isRound = (span: Span): span is Round => span.kind === 'round';
/** Whether a bar consists of others, and therefore has no event. */
export const isGroup = (span: Span): span is Group => isRound(span) || span.kind === 'calls';

/** Key of a bar for its fold state. */
export const foldKey = (span: Span): string => (isTurn(span) ? span.turnId : `${span.turn?.turnId ?? ''}/${span.id}`);

/** Whether a bar is folded by default: parts of a request, and equal calls. */
export const isFoldedAtFirst = ({ kind }: Span): boolean => kind === 'request' || kind === 'calls';
