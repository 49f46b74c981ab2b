/**
 * A copy of an actor that is stepped in the page: the same machine, the facts that may be seen, a simulated clock. Nothing is
 * started or sent anywhere. Guards that need more than these facts are `unknown`, and the user chooses.
 */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import {
  actionName,
  eventName,
  guardName,
  isOurs,
  nodeId,
  transitionIds,
  transitionsOf,
} from '../../../../inspect/browser.ts';
import { applied, type ConditionResult, evaluateGuard } from './evaluate.ts';
import { attempt, type Fields, partlyKnown } from './known.ts';
import { activeIn, compatible, concerned, inOrder, leafNodes, moved, regionOf } from './step.ts';

/** A transition that an event may take. */
export interface Candidate {
  readonly id: string;
  readonly guard: string | null;
  readonly verdict: ConditionResult;
  /** Field that the guard needs and the page does not have. */
  readonly missing: string | null;
  /** Id of the target; null: the state is not left. */
  readonly target: string | null;
}

export interface SimulatedStep {
  /** Event, or `always`. */
  readonly event: string;
  readonly at: number;
  readonly from: string;
  readonly to: string;
  /** Names, in the order in which they run. */
  readonly actions: readonly string[];
  readonly edge: string;
}

/** A decision that only the user can make: a guard is unknown. */
export interface Choice {
  readonly event: string;
  readonly candidates: readonly Candidate[];
  /** Known fields of the event's payload. */
  readonly fields: Fields;
  /** Decisions that the user has made for this event in other regions, by transition. */
  readonly decided: Decided;
}

/** Verdicts of the user, by transition. */
type Decided = Readonly<Record<string, 'yes' | 'no'>>;

export interface Simulation {
  /** The active innermost states: one, or one of each region. */
  readonly leaves: readonly string[];
  readonly known: Fields;
  /** Simulated milliseconds since the simulation began. */
  readonly now: number;
  /** When each state was entered. */
  readonly enteredAt: Readonly<Record<string, number>>;
  readonly steps: readonly SimulatedStep[];
  readonly choice: Choice | null;
  /** Last event that changed nothing. */
  readonly ignored: string | null;
}

/** A delay that runs. `due` is null when its length is not known: it can be sent like an event. */
export interface Timer {
  readonly event: string;
  readonly due: number | null;
}

/** Longest run of transitions without an event, so that a machine that loops does not hang the page. */
const mostAlways = 50;

/** A simulation that begins in these states. @param known fields of the context whose values the page has */
export function begin(machine: AnyStateMachine, states: readonly string[], known: Fields): Simulation {
  const active = activeIn(machine, states);
  const enteredAt = Object.fromEntries([...active].map((node) => [nodeId(node), 0]));
  const leaves = leafNodes(active).map(nodeId);
  return { leaves, known, now: 0, enteredAt, steps: [], choice: null, ignored: null };
}

/** Whether the machine has ended: an actor takes no event in a final state of its root. */
const isDone = (machine: AnyStateMachine, { leaves }: Simulation): boolean =>
  [...activeIn(machine, leaves)].some(({ type, parent }) => type === 'final' && parent === machine.root);

/** Sends an event by its name in the chart: `STOP`, `after(backoff)`. `fields` are its payload. */
export function send(machine: AnyStateMachine, before: Simulation, event: string, fields: Fields = {}): Simulation {
  if (isDone(machine, before)) return { ...before, ignored: event };
  const { now, known } = before;
  const payload = { incarnation: known['incarnation'], at: now, ...fields };
  const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  return decide(machine, { ...before, ignored: null }, event, given);
}

/** Takes the transition that the user has chosen, unless another guard of the event is unknown. */
export function choose(machine: AnyStateMachine, before: Simulation, id: string): Simulation {
  const { choice } = before;
  const at = choice?.candidates.findIndex((candidate) => candidate.id === id) ?? -1;
  if (!choice || at < 0) return before;
  const refused = choice.candidates.slice(0, at).map((candidate) => [candidate.id, 'no'] as const);
  const decided: Decided = { ...choice.decided, ...Object.fromEntries(refused), [id]: 'yes' };
  return decide(machine, { ...before, choice: null }, choice.event, choice.fields, decided);
}

/** Lets time pass: delays of known length that end within it are taken in their order. */
export function advance(machine: AnyStateMachine, before: Simulation, milliseconds: number): Simulation {
  const until = before.now + milliseconds;
  let present = before;
  for (let count = 0; count < mostAlways; count += 1) {
    const next = timersOf(machine, present)
      .filter((timer): timer is { event: string; due: number } => timer.due !== null && timer.due <= until)
      .sort((a, b) => a.due - b.due)[0];
    if (!next || present.choice) break;
    const taken = send(machine, { ...present, now: Math.max(present.now, next.due) }, next.event);
    // A delay whose guard does not hold passes without effect, and only once.
    if (taken.steps.length === present.steps.length && !taken.choice) break;
    present = taken;
  }
  return present.choice ? present : { ...present, now: until };
}

/** Delays of the active states. */
export function timersOf(machine: AnyStateMachine, { leaves, known, enteredAt }: Simulation): Timer[] {
  return inOrder(activeIn(machine, leaves)).flatMap((node) =>
    node.after.map((transition) => {
      const delay =
        typeof transition.delay === 'string' ? machine.implementations.delays[transition.delay] : transition.delay;
      const length =
        typeof delay === 'function'
          ? attempt(() => delay({ context: partlyKnown(known), event: partlyKnown({}) } as never, {} as never))
          : { value: delay };
      const began = enteredAt[nodeId(node)] ?? 0;
      const isKnown = 'value' in length && typeof length.value === 'number';
      return { event: eventName(transition), due: isKnown ? began + Number(length.value) : null };
    }),
  );
}

/** Events that the active states listen to, each once. */
export function eventsOf(machine: AnyStateMachine, present: Simulation): string[] {
  if (isDone(machine, present)) return [];
  const active = inOrder(activeIn(machine, present.leaves)).toReversed();
  const events = active.flatMap(transitionsOf).map((transition) => eventName(transition, active));
  return [...new Set(events)].filter((event) => event !== 'always' && !event.endsWith('(*)'));
}

/** The active states of a simulation, outermost first. */
export const statesOf = (machine: AnyStateMachine, { leaves }: Simulation): string[] =>
  inOrder(activeIn(machine, leaves))
    .filter((node) => node.parent)
    .map(nodeId);

/** Transitions of these states for an event. */
const candidatesOf = (states: readonly AnyStateNode[], event: string): AnyTransitionDefinition[] =>
  states.flatMap((node) => transitionsOf(node).filter((transition) => eventName(transition, states) === event));

const idOf = (transition: AnyTransitionDefinition): string => transitionIds(transition)[0] ?? '';

interface EvaluatedTransition {
  readonly transition: AnyTransitionDefinition;
  readonly verdict: ConditionResult;
  readonly missing: string | null;
}

/** Candidates of a region up to the first that holds; those that do not hold come before it. */
function openIn(
  machine: AnyStateMachine,
  candidates: readonly AnyTransitionDefinition[],
  known: Fields,
  fields: Fields,
  decided: Decided,
): readonly EvaluatedTransition[] {
  const evaluated = candidates.map((transition): EvaluatedTransition => {
    const verdict = decided[idOf(transition)];
    if (verdict !== undefined) return { transition, verdict, missing: null };
    return { transition, ...evaluateGuard(machine, transition, known, withType(transition, fields)) };
  });
  const until = evaluated.findIndex(({ verdict }) => verdict === 'yes');
  return until < 0 ? evaluated : evaluated.slice(0, until + 1);
}

const candidateOf = ({ transition, verdict, missing }: EvaluatedTransition): Candidate => ({
  id: idOf(transition),
  guard: guardName(transition.guard),
  verdict,
  missing,
  target: transition.target?.[0] ? nodeId(transition.target[0]) : null,
});

/** Transitions to take, or the candidates of which the user must choose. */
type Selection =
  | { readonly enabled: readonly AnyTransitionDefinition[] }
  | { readonly open: readonly EvaluatedTransition[] };

/**
 * Tries the states of a region from the inside. A state with regions, and its ancestors, are tried when no region of it has
 * a transition.
 */
function select(top: AnyStateNode, active: ReadonlySet<AnyStateNode>, openOf: OpenOf): Selection {
  const { chain, regions } = regionOf(top, active);
  const inner = new Set<AnyTransitionDefinition>();
  for (const region of regions) {
    const selected = select(region, active, openOf);
    if ('open' in selected) return selected;
    for (const each of selected.enabled) inner.add(each);
  }
  if (inner.size > 0) return { enabled: [...inner] };
  const open = openOf(chain);
  const first = open.find(({ verdict }) => verdict !== 'no');
  if (first?.verdict === 'unknown') return { open };
  return { enabled: first ? [first.transition] : [] };
}

type OpenOf = (chain: readonly AnyStateNode[]) => readonly EvaluatedTransition[];

function decide(
  machine: AnyStateMachine,
  present: Simulation,
  event: string,
  fields: Fields,
  decided: Decided = {},
): Simulation {
  const active = activeIn(machine, present.leaves);
  const selected = select(machine.root, active, (chain) =>
    openIn(machine, candidatesOf(chain, event), present.known, fields, decided),
  );
  if ('open' in selected) {
    return { ...present, choice: { event, candidates: selected.open.map(candidateOf), fields, decided } };
  }
  const { enabled } = selected;
  if (enabled.length > 0) return settle(machine, take(machine, present, compatible(enabled, active), event, fields));
  return event === 'always' ? present : settle(machine, { ...present, ignored: event });
}

/** Takes transitions that need no event, until none is left or one is unknown. */
function settle(machine: AnyStateMachine, present: Simulation): Simulation {
  const taken = present.steps.findLastIndex(({ event }) => event !== 'always');
  if (present.choice || present.steps.length - taken > mostAlways) return present;
  return decide(machine, present, 'always', {});
}

/** Fields of an event with its type, which actions assert. */
const withType = ({ eventType }: AnyTransitionDefinition, fields: Fields): Fields => ({ ...fields, type: eventType });

function take(
  machine: AnyStateMachine,
  present: Simulation,
  transitions: readonly AnyTransitionDefinition[],
  event: string,
  fields: Fields,
): Simulation {
  const before = activeIn(machine, present.leaves);
  const { left, entered, after } = moved(machine, before, transitions);
  const [first] = transitions;
  const actions = [
    ...left.flatMap((node) => node.exit),
    ...transitions.flatMap((transition) => transition.actions),
    ...entered.flatMap((node) => node.entry),
  ].filter(isOurs);
  const payload = first ? withType(first, fields) : fields;
  return {
    ...present,
    leaves: leafNodes(after).map(nodeId),
    known: actions.reduce<Fields>((known, action) => applied(machine, known, action, payload), present.known),
    enteredAt: { ...present.enteredAt, ...Object.fromEntries(entered.map((node) => [nodeId(node), present.now])) },
    steps: [
      ...present.steps,
      {
        event,
        at: present.now,
        from: concerned(before, left, transitions),
        to: concerned(after, entered, transitions),
        actions: actions.map(actionName),
        edge: first ? idOf(first) : '',
      },
    ],
  };
}
