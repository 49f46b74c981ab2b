import * as v from 'valibot';

/** A transition of a turn's machine. */
export interface PastStep {
  /** Position among all transitions of the turn. */
  readonly step: number;
  readonly at: Date;
  readonly event: string;
  /** Ids of the active states, ancestors first. */
  readonly from: readonly string[];
  readonly to: readonly string[];
}

/** Transitions of earlier processes, and the last known time of the latest process. */
export interface Past {
  readonly steps: readonly PastStep[];
  readonly endedAt: number;
}

/** Most transitions in the facts of a turn. */
const maxSteps = 200;

/** Stored form: names of events and states, then for each transition its time after the first one, and the positions of its event and its states. */
export const PastRecord = v.object({
  /** Milliseconds since the epoch. */
  firstAt: v.number(),
  names: v.array(v.string()),
  steps: v.array(v.tuple([v.number(), v.number(), v.number()])),
});
export type PastRecord = v.InferOutput<typeof PastRecord>;

/** A transition with its stored names. */
interface NamedStep {
  readonly step: number;
  readonly at: number;
  readonly event: string;
  readonly leaves: string;
}

const named = ({ step, at, event, to }: PastStep): NamedStep => ({
  ...{ step, at: at.getTime(), event, leaves: leavesOf(to) },
});

/** Latest transitions of a turn, including those of earlier processes. */
export class PastSteps {
  #steps: readonly NamedStep[];

  constructor(earlier: readonly PastStep[] = []) {
    this.#steps = earlier.map(named);
  }

  /** Position of the latest transition; 0: there is no transition yet. */
  get last(): number {
    return this.#steps.at(-1)?.step ?? 0;
  }

  /** Adds transitions after the latest one. */
  add(steps: readonly PastStep[]): void {
    if (steps.length > 0) this.#steps = [...this.#steps, ...steps.map(named)].slice(-maxSteps);
  }

  get record(): PastRecord {
    const positions = new Map<string, number>();
    const positionOf = (name: string): number => {
      const position = positions.get(name) ?? positions.size;
      positions.set(name, position);
      return position;
    };
    const firstAt = this.#steps[0]?.at ?? 0;
    const steps = this.#steps.map(({ at, event, leaves }): [number, number, number] => [
      ...([at - firstAt, positionOf(event), positionOf(leaves)] as const),
    ]);
    return { firstAt, names: [...positions.keys()], steps };
  }
}

/** Reads stored transitions, with positions from 1. */
export function stepsOf({ firstAt, names, steps }: PastRecord): readonly PastStep[] {
  let from: readonly string[] = [];
  return steps.map(([afterMs, event, state], index) => {
    const to = statesOf(names[state] ?? '');
    const step = { step: index + 1, at: new Date(firstAt + afterMs), event: names[event] ?? '', from, to };
    from = to;
    return step;
  });
}

/** Innermost states, which imply the states around them. */
const leavesOf = (states: readonly string[]): string =>
  states.filter((id) => !states.some((other) => other.startsWith(`${id}.`))).join(' ');

function statesOf(leaves: string): readonly string[] {
  const around = (leaf: string) => leaf.split('.').map((_, index, parts) => parts.slice(0, index + 1).join('.'));
  return [...new Set(leaves.split(' ').flatMap(around))];
}
