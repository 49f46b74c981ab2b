import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { isOurs, transitionIds, withDescendants } from './graph.ts';
import { actionName, eventName, nodeId } from './names.ts';

/** A set of active states. The same set is the same object, so that records share it. */
export interface Configuration {
  readonly index: number;
  /** Ids, ancestors first, without the root. */
  readonly states: string[];
  /** Numbers of these states in XState. */
  readonly orders: readonly number[];
}

/** Facts of a step that all actors of the machine share: all come from the machine's definition. */
export interface Step {
  readonly event: string;
  /** Ids of the chart's edges. */
  readonly edges: string[];
  /** Names, in the order in which the actions ran. */
  readonly actions: string[];
  /** Numbers of the states that were entered, those that were left and entered again included. */
  readonly entered: readonly number[];
}

/** Known steps of one transition: the last one, and those before it. */
interface Known {
  readonly steps: Map<number, Step>;
  from: Configuration | undefined;
  to: Configuration | undefined;
  last: Step | undefined;
}

const unknownStep: Step = { event: '', edges: [], actions: [], entered: [] };

/** A machine as the recorder reads it, computed once for each definition and shared by all its implementations. */
export class MachineKnowledge {
  /** Ids by number of the state. */
  readonly ids: readonly string[];
  readonly #configurations = new Map<string, Configuration>();
  readonly #transitions = new WeakMap<AnyTransitionDefinition, Known>();
  /** Events by type, as people read them. */
  readonly #events: ReadonlyMap<string, string>;

  constructor(machine: AnyStateMachine) {
    const nodes = withDescendants(machine.root);
    const ids: string[] = [];
    const events = new Map<string, string>();
    for (const node of nodes) {
      ids[node.order] = nodeId(node);
      for (const { id } of node.invoke) {
        events.set(`xstate.done.actor.${id}`, `done(${id})`);
        events.set(`xstate.error.actor.${id}`, `error(${id})`);
      }
      for (const transition of [...node.transitions.values()].flat()) {
        events.set(transition.eventType, eventName(transition));
      }
    }
    this.ids = ids;
    this.#events = events;
  }

  /** Name of an event that was received. One that the machine does not know could say anything: it is not repeated. */
  eventName(type: string): string {
    return this.#events.get(type) ?? '(unknown)';
  }

  configurationOf(nodes: readonly AnyStateNode[]): Configuration {
    let key = '';
    for (const node of nodes) key += `${node.order},`;
    const known = this.#configurations.get(key);
    if (known) return known;
    const inOrder = nodes.filter((node) => node.parent).sort((a, b) => a.order - b.order);
    const made: Configuration = {
      index: this.#configurations.size,
      states: inOrder.map(nodeId),
      orders: inOrder.map((node) => node.order),
    };
    this.#configurations.set(key, made);
    return made;
  }

  stepOf(
    transitions: readonly AnyTransitionDefinition[],
    before: readonly AnyStateNode[],
    after: readonly AnyStateNode[],
    from: Configuration,
    to: Configuration,
  ): Step {
    const [first] = transitions;
    if (!first) return unknownStep;
    // Transitions of parallel regions combine freely: those are worked out each time.
    if (transitions.length > 1) return describe(transitions, before, after);
    let known = this.#transitions.get(first);
    if (!known) {
      known = { steps: new Map(), from: undefined, to: undefined, last: undefined };
      this.#transitions.set(first, known);
    }
    if (known.last && known.from === from && known.to === to) return known.last;
    const key = from.index * 65_536 + to.index;
    const step = known.steps.get(key) ?? describe(transitions, before, after);
    known.steps.set(key, step);
    known.from = from;
    known.to = to;
    known.last = step;
    return step;
  }

  /** Without XState's private list of transitions: the states show that something happened, not how. */
  unexplained(from: Configuration, to: Configuration): Step {
    return {
      ...unknownStep,
      event: 'transition',
      entered: to.orders.filter((order) => !from.orders.includes(order)),
    };
  }
}

function describe(
  transitions: readonly AnyTransitionDefinition[],
  from: readonly AnyStateNode[],
  to: readonly AnyStateNode[],
): Step {
  const left = new Set<AnyStateNode>();
  const entered = new Set<AnyStateNode>();
  for (const transition of transitions) {
    const domain = domainOf(transition);
    if (domain === undefined) continue;
    for (const node of from) if (isBelow(node, domain)) left.add(node);
    for (const node of to) if (isBelow(node, domain)) entered.add(node);
  }
  const enteredInOrder = [...entered].sort((a, b) => a.order - b.order);
  const actions = [
    ...[...left].sort((a, b) => b.order - a.order).flatMap((node) => node.exit),
    ...transitions.flatMap((transition) => transition.actions),
    ...enteredInOrder.flatMap((node) => node.entry),
  ];
  const [first] = transitions;
  return {
    event: first ? eventName(first, from) : '',
    edges: transitions.flatMap(transitionIds),
    actions: actions.filter(isOurs).map(actionName),
    entered: enteredInOrder.filter((node) => node.parent).map((node) => node.order),
  };
}

/**
 * The state whose descendants a transition leaves and enters (SCXML's transition domain): null for the whole machine,
 * undefined for a transition without a target, which leaves nothing.
 */
function domainOf(transition: AnyTransitionDefinition): AnyStateNode | null | undefined {
  const { source, target: targets, reenter } = transition;
  if (!targets) return undefined;
  if (!reenter && targets.every((target) => target === source || isBelow(target, source))) return source;
  for (let node: AnyStateNode | undefined = source.parent; node; node = node.parent) {
    const ancestor = node;
    if (targets.every((target) => isBelow(target, ancestor))) return ancestor;
  }
  return null;
}

function isBelow(node: AnyStateNode, ancestor: AnyStateNode | null): boolean {
  if (ancestor === null) return true;
  for (let up = node.parent; up; up = up.parent) if (up === ancestor) return true;
  return false;
}
