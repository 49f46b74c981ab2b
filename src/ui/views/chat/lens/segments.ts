import type { Segment } from '../../../parts/state-strip.tsx';
import { isTurn, type Span, type TraceModel, type Turn } from '../../sessions/trace/model.ts';

/** One turn on the strip of a conversation, which leaves out the time between turns. */
export interface TurnTime {
  readonly turn: Turn;
  /** Offset of its start, in milliseconds of work. */
  readonly from: number;
  readonly ms: number;
}

/** Total time of all turns. */
export interface Strip {
  readonly turnTimes: readonly TurnTime[];
  readonly totalMs: number;
  readonly segments: readonly Segment[];
}

/** Minimum share of a part of the strip. A smaller part is merged with the part before it. */
const leastShare = 1 / 240;

/** @param now end of open turns, in milliseconds since the epoch */
export function stripOf(model: TraceModel, now: number): Strip {
  const turnTimes: TurnTime[] = [];
  let totalMs = 0;
  for (const turn of model.roots.filter(isTurn)) {
    const ms = Math.max(0, (turn.end ?? now) - turn.start);
    turnTimes.push({ turn, from: totalMs, ms });
    totalMs += ms;
  }
  return {
    turnTimes,
    totalMs,
    segments: joined(
      turnTimes.flatMap(({ turn, ms }) => partsOf(turn, ms)),
      totalMs,
    ),
  };
}

type Part = Pick<Segment, 'kind'> & { readonly ms: number };

/**
 * Work of one turn in order of time. Where parts overlap, a wait for the user hides a pause, a pause hides a call, and a call hides the
 * model.
 */
function partsOf(turn: Turn, ms: number): Part[] {
  const until = turn.start + ms;
  const timesOf = (isOne: (span: Span) => boolean) =>
    turn.children.filter(isOne).map(({ start, end }) => [start, Math.min(end ?? until, until)] as const);
  const asks = timesOf(({ kind, isByRule }) => kind === 'approval' && !isByRule);
  const works = timesOf(({ kind }) => kind === 'tool');
  const pauses = pausesOf(turn, until);
  const edges = [...new Set([turn.start, until, ...[...asks, ...pauses, ...works].flat()])].sort((a, b) => a - b);
  const isIn = (times: readonly (readonly [number, number])[], at: number) =>
    times.some(([from, to]) => from <= at && at < to);
  const parts = edges.slice(0, -1).map((from, index): Part => {
    const kind = isIn(asks, from) ? 'asks' : isIn(pauses, from) ? 'pauses' : isIn(works, from) ? 'works' : 'thinks';
    return { kind, ms: (edges[index + 1] ?? from) - from };
  });
  return turn.state === 'failed' ? [...parts, { kind: 'failed', ms: 0 }] : parts;
}

/** Times from the end of a failed request to its repetition: the turn waits to try again, or for a quota. */
function pausesOf(turn: Turn, until: number): readonly (readonly [number, number])[] {
  const requests = turn.children.filter(({ kind }) => kind === 'request');
  return requests.flatMap(({ state, end = until }, index) =>
    state === 'failed' ? [[end, requests[index + 1]?.start ?? (turn.end === undefined ? until : end)] as const] : [],
  );
}

function joined(parts: readonly Part[], totalMs: number): Segment[] {
  const merged: { kind: Segment['kind']; ms: number }[] = [];
  for (const { kind, ms } of parts) {
    const last = merged.at(-1);
    const isTiny = kind !== 'failed' && ms < totalMs * leastShare;
    if (last && last.kind !== 'failed' && (last.kind === kind || isTiny)) last.ms += ms;
    else merged.push({ kind, ms });
  }
  return merged.map(({ kind, ms }) => ({ kind, share: totalMs === 0 ? 0 : ms / totalMs }));
}

/** Offset of a moment on the strip. Between two turns: the end of the earlier turn. */
export function placeOf({ turnTimes, totalMs }: Strip, at: number): number {
  const turnTime = turnTimes.findLast(({ turn }) => turn.start <= at);
  return turnTime ? turnTime.from + Math.min(turnTime.ms, at - turnTime.turn.start) : at === Infinity ? totalMs : 0;
}

/** Turn and moment at an offset of the strip. */
export function momentAt(
  { turnTimes }: Strip,
  place: number,
): { readonly turn: Turn; readonly at: number } | undefined {
  const turnTime = turnTimes.findLast(({ from }) => from <= place);
  return turnTime && { turn: turnTime.turn, at: turnTime.turn.start + Math.min(turnTime.ms, place - turnTime.from) };
}

/** Starts of all bars in order of time: the steps of the arrow keys. */
export function stopsOf({ turnTimes }: Strip): readonly number[] {
  const starts = turnTimes.flatMap(({ turn }) => [turn.start, ...turn.children.map(({ start }) => start)]);
  return [...new Set(starts)].sort((a, b) => a - b);
}
