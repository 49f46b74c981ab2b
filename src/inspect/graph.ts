import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import type { ChartEdge, ChartNode } from '../protocol/index.ts';
import { actionName, eventName, guardName, nodeId } from './names.ts';

export type GraphNode = Omit<ChartNode, 'x' | 'y' | 'width' | 'height'>;
/** `internal`: it has no target, so no state is left or entered. */
export type GraphEdge = Omit<ChartEdge, 'label' | 'labelAt' | 'points'> & { readonly internal: boolean };

/** A machine as plain data: the source of every drawing and table. */
export interface MachineGraph {
  readonly name: string;
  readonly description: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** Every transition that leaves a state, in the order in which the machine tries them. */
export function transitionsOf(node: AnyStateNode): AnyTransitionDefinition[] {
  return [...(node.always ?? []), ...[...node.transitions.values()].flat()];
}

/** The state and all below it, in document order. */
export function withDescendants(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(withDescendants)];
}

/** Reads a machine's states and transitions. Nothing is run and no context is made. */
export function graphOf(name: string, machine: AnyStateMachine): MachineGraph {
  const states = withDescendants(machine.root);
  return {
    name,
    description: machine.root.description ?? '',
    nodes: states.map((node) => graphNode(name, node)),
    edges: states.flatMap(edgesOf),
  };
}

function graphNode(name: string, node: AnyStateNode): GraphNode {
  const meta: ChartNode['meta'] = node.meta;
  return {
    id: nodeId(node),
    parent: node.parent ? nodeId(node.parent) : null,
    label: node.parent ? node.key : name,
    description: node.description ?? '',
    kind: node.type,
    initial: node.parent?.type === 'compound' && node.parent.initial.target.includes(node),
    ...(meta && { meta }),
    invokes: node.invoke.map((invoke) => String(invoke.src)),
    entry: node.entry.filter(isOurs).map(actionName),
    exit: node.exit.filter(isOurs).map(actionName),
  };
}

/** XState arms a state's `after` timers by a raise on entry and a cancel on exit: machinery, not part of the design. */
export function isOurs(action: unknown): boolean {
  const type = typeof action === 'function' && 'type' in action ? action.type : null;
  return type !== 'xstate.raise' && type !== 'xstate.cancel';
}

const edgeId = (source: AnyStateNode, position: number, branch: number): string =>
  `${nodeId(source)}:${position}:${branch}`;

/** Ids of the edges that a chart draws for a transition: one for each target, or one that stays where it is. */
export function transitionIds(transition: AnyTransitionDefinition): string[] {
  const { source, target } = transition;
  const position = transitionsOf(source).indexOf(transition);
  if (position < 0) return [];
  return (target ?? [source]).map((_, branch) => edgeId(source, position, branch));
}

function edgesOf(node: AnyStateNode): GraphEdge[] {
  const source = nodeId(node);
  return transitionsOf(node).flatMap((transition, position) => {
    const delayMs = delayOf(node, transition);
    return (transition.target ?? [node]).map((target, branch) => ({
      id: edgeId(node, position, branch),
      source,
      target: nodeId(target),
      event: eventName(transition),
      guard: guardName(transition.guard),
      actions: transition.actions.map(actionName),
      ...(delayMs !== undefined && { delayMs }),
      internal: transition.target === undefined,
    }));
  });
}

/** How long a delayed transition waits, where the machine itself says so; undefined when its context decides. */
function delayOf(
  node: AnyStateNode,
  { delay }: AnyTransitionDefinition & { readonly delay?: unknown },
): number | undefined {
  const given: unknown = typeof delay === 'string' ? node.machine.implementations.delays[delay] : delay;
  return typeof given === 'number' ? given : undefined;
}
