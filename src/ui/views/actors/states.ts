import { causeOf } from '../../../inspect/browser.ts';
import type { Chart, ChartEdge } from '../../../protocol/index.ts';

/** Transitions that could be taken in these states, the innermost states' first: those have precedence. */
export function possibleEdges(chart: Chart, states: readonly string[]): ChartEdge[] {
  return chart.edges
    .filter((edge) => edge.source === '' || states.includes(edge.source))
    .sort((a, b) => b.source.length - a.source.length);
}

/** An arrow in words: `PROBE.FAILED [reachesFailureThreshold]`. */
export function edgeTitle(edge: ChartEdge): string {
  return edge.guard === null ? causeOf(edge) : `${causeOf(edge)} [${edge.guard}]`;
}
