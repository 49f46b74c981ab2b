import type { AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { isOurs } from './graph.ts';
import { actionName, eventName, nodeId } from './names.ts';

/** Ids of active states, ancestors first, without the root. The same set gives the same array: records share it. */
export class StateLists {
  readonly #lists = new Map<string, string[]>();

  of(nodes: readonly AnyStateNode[]): string[] {
    let key = '';
    for (const node of nodes) key += `${node.order},`;
    const known = this.#lists.get(key);
    if (known) return known;
    const list = nodes
      .filter((node) => node.parent)
      .sort((a, b) => a.order - b.order)
      .map(nodeId);
    this.#lists.set(key, list);
    return list;
  }
}

/** What is told of a step: the event as the machine names it, and the actions in the order in which they ran. */
export interface Step {
  readonly event: string;
  readonly actions: string[];
}

/** Works out steps from transition definitions, once for each pair of transition and states. */
export class Steps {
  readonly #known = new WeakMap<AnyTransitionDefinition, Map<string, Step>>();

  of(
    transitions: readonly AnyTransitionDefinition[],
    from: readonly AnyStateNode[],
    to: readonly AnyStateNode[],
    key: string,
  ): Step {
    const [first] = transitions;
    if (!first) return { event: '', actions: [] };
    // Transitions of parallel regions combine freely: those are worked out each time.
    if (transitions.length > 1) return describe(transitions, from, to);
    let byStates = this.#known.get(first);
    if (!byStates) {
      byStates = new Map();
      this.#known.set(first, byStates);
    }
    let step = byStates.get(key);
    if (!step) {
      step = describe(transitions, from, to);
      byStates.set(key, step);
    }
    return step;
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
  const actions = [
    ...[...left].sort((a, b) => b.order - a.order).flatMap((node) => node.exit),
    ...transitions.flatMap((transition) => transition.actions),
    ...[...entered].sort((a, b) => a.order - b.order).flatMap((node) => node.entry),
  ];
  const [first] = transitions;
  return { event: first ? eventName(first) : '', actions: actions.filter(isOurs).map(actionName) };
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
