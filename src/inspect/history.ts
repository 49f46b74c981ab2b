import type { ActorRecord, TransitionRecord } from '../protocol/index.ts';

type Facts = ActorRecord['projection'];

/** Transition in positions of names. Its states before are those after the transition before it. */
type PackedStep = readonly [
  /** Milliseconds after the first one. */
  afterMs: number,
  event: number,
  /** Position, or -1 for none. */
  source: number,
  edges: readonly number[],
  to: readonly number[],
  /** Positions; null: unknown. */
  entered: readonly number[] | null,
  actions: readonly number[],
  /** Facts that have changed. */
  facts: Facts,
];

/** Successive transitions of one actor with each name once: about a tenth of the size of their records. */
export interface PackedHistory {
  readonly id: string;
  /** Position of the first transition in the history of the actor, its time, and the states before it. */
  readonly step: number;
  readonly at: Date;
  readonly from: readonly string[];
  readonly names: readonly string[];
  readonly steps: readonly PackedStep[];
}

/** Packs successive transitions of an actor, at least one. Those before a fact disappeared are left out. */
export function packHistory(records: readonly TransitionRecord[]): PackedHistory | null {
  const kept = records.slice(1 + records.findLastIndex((record, at) => losesFact(record, records[at + 1])));
  const [first] = kept;
  if (!first) return null;
  const names = new Map<string, number>();
  const positionOf = (name: string): number => {
    const position = names.get(name) ?? names.size;
    names.set(name, position);
    return position;
  };
  let before: Facts = {};
  const steps = kept.map(({ at, event, source, edges, to, entered, actions, projection }): PackedStep => {
    const changed = Object.entries(projection).filter(([name, fact]) => !isSame(before[name], fact));
    before = projection;
    return [
      at.getTime() - first.at.getTime(),
      positionOf(event),
      source === null ? -1 : positionOf(source),
      edges.map(positionOf),
      to.map(positionOf),
      entered?.map(positionOf) ?? null,
      actions.map(positionOf),
      Object.fromEntries(changed),
    ];
  });
  return { id: first.id, step: first.step, at: first.at, from: first.from, names: [...names.keys()], steps };
}

const losesFact = (record: TransitionRecord, next: TransitionRecord | undefined): boolean =>
  next !== undefined && Object.keys(record.projection).some((name) => !(name in next.projection));

const isSame = (a: Facts[string] | undefined, b: Facts[string]): boolean =>
  a === b || (a instanceof Date && b instanceof Date && a.getTime() === b.getTime());

/** Restores the transitions. */
export function unpackHistory({ id, step, at, from, names, steps }: PackedHistory): TransitionRecord[] {
  const named = (positions: readonly number[]) => positions.map((position) => names[position] ?? '');
  let last = [...from];
  let projection: Facts = {};
  return steps.map(([afterMs, event, source, edges, to, entered, actions, facts], index) => {
    const before = last;
    last = named(to);
    projection = { ...projection, ...facts };
    return {
      type: 'transition',
      id,
      step: step + index,
      at: new Date(at.getTime() + afterMs),
      event: names[event] ?? '',
      source: names[source] ?? null,
      edges: named(edges),
      from: before,
      to: last,
      ...(entered && { entered: named(entered) }),
      actions: named(actions),
      projection,
    };
  });
}
