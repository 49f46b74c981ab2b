import { type AnyStateMachine, createMachine } from 'xstate';
import type { Chart, ChartEdge } from '../../protocol/index.ts';

/** Configuration of a state in a machine that is created from a chart. */
interface StateConfig {
  type?: 'parallel' | 'final';
  initial?: string;
  states?: Record<string, StateConfig>;
  always?: TransitionConfig[];
  on?: Record<string, TransitionConfig[]>;
  after?: Record<string, TransitionConfig[]>;
}

interface TransitionConfig {
  readonly target?: readonly string[];
  readonly guard?: string;
  readonly actions: readonly string[];
}

/**
 * Creates a machine with the states and transitions of a chart, for a simulation. The page does not have the program's guards and
 * actions: it only has the name of each guard, and the user decides.
 */
export function machineOfChart(chart: Chart): AnyStateMachine {
  const stateOf = (id: string): StateConfig => {
    const children = chart.nodes.filter(({ parent }) => parent === id);
    // A simulation replaces a history state with the initial state.
    const real = children.filter(({ kind }) => kind !== 'history');
    const own = chart.nodes.find((node) => node.id === id);
    const config: StateConfig = {};
    if (own?.kind === 'parallel' || own?.kind === 'final') config.type = own.kind;
    const first = real.find(({ initial }) => initial) ?? real[0];
    if (first && own?.kind !== 'parallel') config.initial = keyOf(first.id);
    if (real.length > 0) config.states = Object.fromEntries(real.map((node) => [keyOf(node.id), stateOf(node.id)]));
    for (const [event, ofEvent] of transitionsOf(chart, id)) {
      const transitions = ofEvent.map((edges) => transitionOf(chart, edges));
      const delay = /^after\((.*)\)$/s.exec(event)?.[1];
      if (event === 'always') config.always = transitions;
      else if (delay !== undefined) config.after = { ...config.after, [delay]: transitions };
      else config.on = { ...config.on, [event]: transitions };
    }
    return config;
  };
  const delays = Object.fromEntries(
    chart.edges.flatMap(({ event, delayMs }) => {
      const name = /^after\((.*)\)$/s.exec(event)?.[1];
      return name !== undefined && delayMs !== undefined ? [[name, delayMs] as const] : [];
    }),
  );
  return createMachine({ id: rootId, ...stateOf('') } as Parameters<typeof createMachine>[0], { delays } as never);
}

/** Id of every copy, which prefixes the targets of its transitions. */
const rootId = 'copy';

const keyOf = (id: string): string => id.split('.').at(-1) ?? id;

/** Transitions of a state by event. The edges of one transition lead to its targets. */
function transitionsOf({ edges }: Chart, source: string): ReadonlyMap<string, readonly (readonly ChartEdge[])[]> {
  const found = new Map<string, Map<string, ChartEdge[]>>();
  for (const edge of edges) {
    if (edge.source !== source) continue;
    const ofEvent = found.get(edge.event) ?? new Map<string, ChartEdge[]>();
    const transition = edge.id.slice(0, edge.id.lastIndexOf(':'));
    ofEvent.set(transition, [...(ofEvent.get(transition) ?? []), edge]);
    found.set(edge.event, ofEvent);
  }
  return new Map([...found].map(([event, ofEvent]) => [event, [...ofEvent.values()]]));
}

function transitionOf(chart: Chart, edges: readonly ChartEdge[]): TransitionConfig {
  const [first] = edges;
  const targets = edges.filter(({ points }) => points.length > 0).map(({ target }) => targetOf(chart, target));
  return {
    ...(targets.length > 0 && { target: targets }),
    ...(first && first.guard !== null && { guard: first.guard }),
    actions: first?.actions ?? [],
  };
}

/** Replaces a history state with its parent, which enters its initial state. */
function targetOf({ nodes }: Chart, target: string): string {
  const isHistory = nodes.some(({ id, kind }) => id === target && kind === 'history');
  const id = isHistory ? target.split('.').slice(0, -1).join('.') : target;
  return id === '' ? `#${rootId}` : `#${rootId}.${id}`;
}
