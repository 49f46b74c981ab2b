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
import { applied, judge, type Verdict } from './evaluate.ts';
import { attempt, type Fields, partlyKnown } from './known.ts';

/** A transition that an event may take. */
export interface Candidate {
  readonly id: string;
  readonly guard: string | null;
  readonly verdict: Verdict;
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
}

export interface Simulation {
  /** The active simple state. */
  readonly leaf: string;
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

/** A simulation that begins in this state. @param known fields of the context whose values the page has */
export function begin(machine: AnyStateMachine, leaf: string, known: Fields): Simulation {
  const enteredAt = Object.fromEntries(pathOf(machine, leaf).map((node) => [nodeId(node), 0]));
  return { leaf, known, now: 0, enteredAt, steps: [], choice: null, ignored: null };
}

/** Sends an event, as its chart names it: `STOP`, `after(backoff)`. With `fields` for what its payload has. */
export function send(machine: AnyStateMachine, before: Simulation, event: string, fields: Fields = {}): Simulation {
  const { now, known } = before;
  const payload = { incarnation: known['incarnation'], at: now, ...fields };
  const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  return decide(machine, { ...before, ignored: null }, event, given);
}

/** Takes the transition that the user has chosen. */
export function choose(machine: AnyStateMachine, before: Simulation, id: string): Simulation {
  const { choice } = before;
  const transition =
    choice && candidatesOf(machine, before, choice.event).find((each) => transitionIds(each).includes(id));
  if (!choice || !transition) return before;
  return settle(machine, take(machine, { ...before, choice: null }, transition, choice.event, {}));
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
export function timersOf(machine: AnyStateMachine, { leaf, known, enteredAt }: Simulation): Timer[] {
  return pathOf(machine, leaf).flatMap((node) =>
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
export function eventsOf(machine: AnyStateMachine, { leaf }: Simulation): string[] {
  const transitions = pathOf(machine, leaf).toReversed().flatMap(transitionsOf);
  return [...new Set(transitions.map(eventName))].filter((event) => event !== 'always');
}

/** The active states of a simulation, outermost first. */
export const statesOf = (machine: AnyStateMachine, { leaf }: Simulation): string[] =>
  pathOf(machine, leaf)
    .filter((node) => node.parent)
    .map(nodeId);

function nodeAt(machine: AnyStateMachine, id: string): AnyStateNode {
  let node: AnyStateNode = machine.root;
  for (const key of id === '' ? [] : id.split('.')) {
    const child = node.states[key];
    if (!child) throw new Error(`${machine.id} has no state ${id}`);
    node = child;
  }
  return node;
}

/** The state and all around it, outermost first. */
function pathOf(machine: AnyStateMachine, id: string): AnyStateNode[] {
  const path: AnyStateNode[] = [];
  for (let node: AnyStateNode | undefined = nodeAt(machine, id); node; node = node.parent) path.unshift(node);
  return path;
}

const leafBelow = (node: AnyStateNode): AnyStateNode => {
  const [first] = node.type === 'compound' ? node.initial.target : [];
  return first ? leafBelow(first) : node;
};

/** Transitions for an event, in the order in which the machine tries them: the innermost state's first. */
function candidatesOf(machine: AnyStateMachine, { leaf }: Simulation, event: string): AnyTransitionDefinition[] {
  return pathOf(machine, leaf)
    .toReversed()
    .flatMap((node) => transitionsOf(node).filter((transition) => eventName(transition) === event));
}

function decide(machine: AnyStateMachine, present: Simulation, event: string, fields: Fields): Simulation {
  const transitions = candidatesOf(machine, present, event);
  const judged = transitions.map((transition) => ({
    transition,
    ...judge(machine, transition, present.known, withType(transition, fields)),
  }));
  const until = judged.findIndex(({ verdict }) => verdict === 'yes');
  const open = until < 0 ? judged : judged.slice(0, until + 1);
  const first = open.find(({ verdict }) => verdict !== 'no');
  if (!first) return event === 'always' ? present : settle(machine, { ...present, ignored: event });
  if (first.verdict === 'yes') return settle(machine, take(machine, present, first.transition, event, fields));
  const candidates = open.map(
    ({ transition, verdict, missing }): Candidate => ({
      id: transitionIds(transition)[0] ?? '',
      guard: guardName(transition.guard),
      verdict,
      missing,
      target: transition.target?.[0] ? nodeId(transition.target[0]) : null,
    }),
  );
  return { ...present, choice: { event, candidates } };
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
  transition: AnyTransitionDefinition,
  event: string,
  fields: Fields,
): Simulation {
  const { source } = transition;
  const target = transition.target?.[0];
  const from = pathOf(machine, present.leaf);
  const next = target ? leafBelow(target) : nodeAt(machine, present.leaf);
  const to = pathOf(machine, nodeId(next));
  const isInner = target !== undefined && !transition.reenter && (target === source || isBelow(target, source));
  const kept =
    target === undefined ? from.length : isInner ? from.indexOf(source) + 1 : sharedOf(from, to, source, target);
  const left = from.slice(kept);
  const entered = to.slice(kept);
  const actions = [
    ...left.toReversed().flatMap((node) => node.exit),
    ...transition.actions,
    ...entered.flatMap((node) => node.entry),
  ].filter(isOurs);
  return {
    ...present,
    leaf: nodeId(next),
    known: actions.reduce<Fields>(
      (known, action) => applied(machine, known, action, withType(transition, fields)),
      present.known,
    ),
    enteredAt: { ...present.enteredAt, ...Object.fromEntries(entered.map((node) => [nodeId(node), present.now])) },
    steps: [
      ...present.steps,
      {
        event,
        at: present.now,
        from: present.leaf,
        to: nodeId(next),
        actions: actions.map(actionName),
        edge: transitionIds(transition)[0] ?? '',
      },
    ],
  };
}

/** How many states from the outside are neither left nor entered: those around source and target. */
function sharedOf(
  from: readonly AnyStateNode[],
  to: readonly AnyStateNode[],
  source: AnyStateNode,
  target: AnyStateNode,
): number {
  const common = from.findIndex((node, index) => to[index] !== node);
  const most = common < 0 ? Math.min(from.length, to.length) : common;
  return Math.min(most, from.indexOf(source), to.indexOf(target));
}

function isBelow(node: AnyStateNode, ancestor: AnyStateNode): boolean {
  for (let up = node.parent; up; up = up.parent) if (up === ancestor) return true;
  return false;
}
