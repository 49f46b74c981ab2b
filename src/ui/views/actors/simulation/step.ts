/** States that one step leaves and enters, by the algorithm of SCXML (appendix D), which XState follows. */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { nodeId } from '../../../../inspect/browser.ts';

/** Sorts states in the order of the document: a state before its children. */
export const inOrder = (nodes: Iterable<AnyStateNode>): AnyStateNode[] => [...nodes].sort((a, b) => a.order - b.order);

function nodeAt(machine: AnyStateMachine, id: string): AnyStateNode {
  let node: AnyStateNode = machine.root;
  for (const key of id === '' ? [] : id.split('.')) {
    const child = node.states[key];
    if (!child) throw new Error(`${machine.id} has no state ${id}`);
    node = child;
  }
  return node;
}

/** The state and its ancestors, innermost first. */
function around(inner: AnyStateNode): AnyStateNode[] {
  const path: AnyStateNode[] = [];
  for (let node: AnyStateNode | undefined = inner; node; node = node.parent) path.push(node);
  return path;
}

const isBelow = (node: AnyStateNode, ancestor: AnyStateNode): boolean =>
  node !== ancestor && around(node).includes(ancestor);

/** Active states of a machine in these states; regions without an active state begin with their initial one. */
export const activeIn = (machine: AnyStateMachine, ids: readonly string[]): ReadonlySet<AnyStateNode> =>
  completed(machine, new Set(ids.flatMap((id) => around(nodeAt(machine, id)))));

/** Innermost active states. */
export const leafNodes = (active: Iterable<AnyStateNode>): AnyStateNode[] =>
  inOrder(active).filter(({ type }) => type === 'atomic' || type === 'final');

/** Adds initial states where a compound state has no active one, and all regions of parallel states. */
function completed(machine: AnyStateMachine, nodes: ReadonlySet<AnyStateNode>): ReadonlySet<AnyStateNode> {
  const active = new Set([machine.root, ...nodes]);
  const complete = (node: AnyStateNode): void => {
    const children = Object.values(node.states);
    if (node.type === 'parallel') for (const child of children) active.add(child);
    if (node.type === 'compound' && !children.some((child) => active.has(child))) {
      for (const target of node.initial.target) for (const each of around(target)) active.add(each);
    }
    for (const child of children) if (active.has(child)) complete(child);
  };
  complete(machine.root);
  return active;
}

/** Active states from `top` down to an innermost one or to one with regions, innermost first; with these regions. */
export function regionOf(top: AnyStateNode, active: ReadonlySet<AnyStateNode>) {
  const chain: AnyStateNode[] = [];
  let regions: readonly AnyStateNode[] = [top];
  while (regions.length === 1) {
    const [node] = regions;
    if (!node) break;
    chain.unshift(node);
    regions = Object.values(node.states).filter((child) => active.has(child));
  }
  return { chain, regions };
}

/** Innermost state that contains a transition and stays active; undefined: the whole machine is entered again. */
function domainOf({ source, target = [], reenter }: AnyTransitionDefinition): AnyStateNode | undefined {
  if (!reenter && target.every((each) => each === source || isBelow(each, source))) return source;
  return around(source)
    .slice(1)
    .find((ancestor) => target.every((each) => isBelow(each, ancestor)));
}

function leftBy(transition: AnyTransitionDefinition, active: ReadonlySet<AnyStateNode>): AnyStateNode[] {
  if (!transition.target?.length) return [];
  const domain = domainOf(transition);
  return [...active].filter((node) => (domain ? isBelow(node, domain) : node.parent !== undefined));
}

/** Transitions that can be taken together: of two that leave the same state, the inner one, else the first. */
export function compatible(
  transitions: readonly AnyTransitionDefinition[],
  active: ReadonlySet<AnyStateNode>,
): AnyTransitionDefinition[] {
  const kept = new Set<AnyTransitionDefinition>();
  for (const transition of transitions) {
    const left = new Set(leftBy(transition, active));
    const rivals = [...kept].filter((other) => leftBy(other, active).some((node) => left.has(node)));
    if (rivals.some(({ source }) => !isBelow(transition.source, source))) continue;
    for (const rival of rivals) kept.delete(rival);
    kept.add(transition);
  }
  return [...kept];
}

/** States left (innermost first), entered (outermost first) and active after these transitions. */
export function moved(
  machine: AnyStateMachine,
  active: ReadonlySet<AnyStateNode>,
  transitions: readonly AnyTransitionDefinition[],
) {
  const left = new Set(transitions.flatMap((transition) => leftBy(transition, active)));
  const rest = [...active].filter((node) => !left.has(node));
  const targets = transitions.flatMap(({ target = [] }) => target.flatMap(around));
  const after = completed(machine, new Set([...rest, ...targets]));
  const entered = inOrder([...after].filter((node) => !rest.includes(node)));
  return { left: inOrder(left).toReversed(), entered, after };
}

/** Names of the innermost states of a step: the changed ones, else those inside the source of its first transition. */
export function concerned(
  active: ReadonlySet<AnyStateNode>,
  changed: readonly AnyStateNode[],
  [first]: readonly AnyTransitionDefinition[],
): string {
  const leaves = leafNodes(active);
  const among = leaves.filter((leaf) => changed.includes(leaf));
  const named =
    among.length > 0 ? among : leaves.filter((leaf) => first !== undefined && around(leaf).includes(first.source));
  return named.map(nodeId).join(' + ');
}
