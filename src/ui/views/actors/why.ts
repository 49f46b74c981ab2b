import type { Chart, ChartEdge, TransitionRecord } from '../../../protocol/index.ts';
import { lookOf, publicState } from '../../parts/tone.ts';
import { type Actor, hasMoved, type LogEntry } from './model.ts';

/** One link of the chain that led to the present state. */
export interface Reason {
  readonly entry: LogEntry;
  /** Number of this event among equal events in a row: the third failed probe. */
  readonly nth: number;
  /** Guards that held: `reachesFailureThreshold`. */
  readonly because: readonly string[];
  /** Later transitions that changed no state, with their number. */
  readonly after: readonly { readonly event: string; readonly times: number }[];
}

export interface Explanation {
  /** The stable state where the chain begins. Null: the actor never changed its state, or no record of a change is stored. */
  readonly from: { readonly states: readonly string[]; readonly heldMs: number | null } | null;
  readonly reasons: readonly Reason[];
  /** The chain goes back further than the log. */
  readonly isCut: boolean;
}

/** A state that lasted this long counts as stable, regardless of its name. */
const settledMs = 60_000;

/** Path of an actor to its state, from the last stable state before it. */
export function explain(actor: Actor, chart: Chart | undefined): Explanation {
  const moves = actor.log.flatMap((entry, index) => (hasMoved(entry.record) ? [index] : []));
  const start = moves.findLastIndex((index) => {
    const entry = actor.log[index];
    return entry !== undefined && leavesRest(entry);
  });
  const chain = start < 0 ? moves : moves.slice(start);
  const first = actor.log[chain[0] ?? -1];
  return {
    from: first ? { states: first.record.from, heldMs: first.heldMs } : null,
    reasons: chain.flatMap((index, position) => reasonAt(actor.log, index, chain[position + 1], chart)),
    isCut: start < 0 && (actor.log[0]?.record.step ?? actor.steps + 1) > 1,
  };
}

/** Whether a transition left a stable state for another state. */
function leavesRest({ record, heldMs }: LogEntry): boolean {
  if (publicState(record.from) === publicState(record.to)) return false;
  const { tone } = lookOf({ states: record.from, projection: record.projection });
  return tone === 'ok' || tone === 'neutral' || (heldMs ?? 0) >= settledMs;
}

function reasonAt(
  log: readonly LogEntry[],
  index: number,
  next: number | undefined,
  chart: Chart | undefined,
): Reason[] {
  const entry = log[index];
  if (!entry) return [];
  const because = edgesOf(chart, entry.record).flatMap(({ guard }) => guard ?? []);
  return [{ entry, nth: nthInARow(log, index), because, after: runsOf(log.slice(index + 1, next)) }];
}

export function edgesOf(chart: Chart | undefined, record: TransitionRecord): ChartEdge[] {
  return chart ? chart.edges.filter((edge) => record.edges.includes(edge.id)) : [];
}

function nthInARow(log: readonly LogEntry[], index: number): number {
  const event = log[index]?.record.event;
  let nth = 1;
  for (let at = index - 1; at >= 0; at -= 1) {
    const record = log[at]?.record;
    if (!record || record.event !== event || hasMoved(record)) break;
    nth += 1;
  }
  return nth;
}

function runsOf(entries: readonly LogEntry[]): Reason['after'] {
  const runs: { event: string; times: number }[] = [];
  for (const { record } of entries) {
    const last = runs.at(-1);
    if (last?.event === record.event) last.times += 1;
    else runs.push({ event: record.event, times: 1 });
  }
  return runs;
}
