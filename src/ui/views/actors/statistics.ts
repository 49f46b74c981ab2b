import type { StateStatistics, TransitionRecord } from '../../../protocol/index.ts';

export type Statistics = Readonly<Record<string, StateStatistics>>;

const none: StateStatistics = { visits: 0, ms: 0 };

/** Adds a transition after `heldMs` milliseconds in the states before it; with `sign` -1, removes this transition. */
export function counted(
  statistics: Statistics,
  { from, to, entered }: Pick<TransitionRecord, 'from' | 'to' | 'entered'>,
  heldMs: number,
  sign: 1 | -1,
): Statistics {
  const next = { ...statistics };
  for (const state of from) {
    const { visits, ms } = next[state] ?? none;
    next[state] = { visits, ms: Math.max(0, ms + sign * heldMs) };
  }
  for (const state of entered ?? to.filter((each) => !from.includes(each))) {
    const { visits, ms } = next[state] ?? none;
    next[state] = { visits: Math.max(0, visits + sign), ms };
  }
  return next;
}

/** Fields of an actor that its statistics need. */
interface Counted {
  readonly states: readonly string[];
  readonly statistics: Statistics;
  readonly countedAt: number;
  readonly ending: { readonly at: number } | null;
}

/** Statistics of an actor up to `now`, including the time in its active states. */
export function statisticsAt(actor: Counted, now: number): Statistics {
  const running = Math.max(0, Math.min(now, actor.ending?.at ?? now) - actor.countedAt);
  return counted(actor.statistics, { from: [...actor.states], to: [] }, running, 1);
}

/** The share of its life that an actor spent in each state, from 0 to 1, by state id. */
export function heatOf(statistics: Statistics): ReadonlyMap<string, number> {
  const outer = Object.entries(statistics).filter(([state]) => !state.includes('.'));
  const life = outer.reduce((sum, [, { ms }]) => sum + ms, 0);
  return new Map(Object.entries(statistics).map(([state, { ms }]) => [state, life === 0 ? 0 : Math.min(1, ms / life)]));
}
