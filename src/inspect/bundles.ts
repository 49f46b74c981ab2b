import type { GraphEdge } from './graph.ts';

/** Transitions between the same two states: they share one line. */
export interface EdgeBundle<E = GraphEdge> {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly edges: readonly E[];
}

/** Transitions with a target, grouped by the two states they join. */
export function bundlesOf<E extends Pick<GraphEdge, 'source' | 'target' | 'internal'>>(graph: {
  readonly edges: readonly E[];
}): EdgeBundle<E>[] {
  const bundles = new Map<string, EdgeBundle<E>>();
  for (const edge of graph.edges) {
    if (edge.internal) continue;
    const id = `${edge.source}→${edge.target}`;
    const edges = [...(bundles.get(id)?.edges ?? []), edge];
    bundles.set(id, { id, source: edge.source, target: edge.target, edges });
  }
  return [...bundles.values()];
}

/** Transitions without a target: they are written inside the box. */
export function internalsOf(graph: { readonly edges: readonly GraphEdge[] }, id: string): GraphEdge[] {
  return graph.edges.filter((edge) => edge.internal && edge.source === id);
}
