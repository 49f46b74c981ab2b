import type { AnyStateMachine } from 'xstate';
import type { Chart, ChartEdge, ChartNode } from '../protocol/index.ts';
import { bundlesOf, internalsOf } from './bundles.ts';
import { type GraphEdge, graphOf, type MachineGraph } from './graph.ts';
import { type Direction, type Layout, layOut } from './layout.ts';
import { boxLines, boxSize, edgeLines, chartFont as font } from './measure.ts';

/** Aspect ratio of the pane that shows a chart. */
const paneRatio = 1.15;

/** Directions of flow that are tried, by depth of nesting; the drawing that fits a pane best is taken. */
const flows: readonly (readonly Direction[])[] = [
  ['DOWN'],
  ['RIGHT'],
  ['DOWN', 'RIGHT', 'DOWN'],
  ['RIGHT', 'DOWN'],
  ['DOWN', 'DOWN', 'RIGHT'],
  ['RIGHT', 'RIGHT', 'DOWN'],
];

/**
 * Draws a machine: every state a box inside its parent's, every transition an arrow with its event and guard. Arrows
 * between the same two states share one line, their labels stacked. A transition without a target does not change its state: it is written inside the box (`points` is empty), as UML does. Build time only: elkjs is not shipped.
 */
export async function chartOf(name: string, machine: AnyStateMachine): Promise<Chart> {
  const graph = graphOf(name, machine);
  return drawChart(graph, await wholeOf(graph));
}

/** The layout of the whole machine that fits a pane best, of those whose lines cross no heading. */
export async function wholeOf(graph: MachineGraph): Promise<Layout> {
  const all = await Promise.all(flows.map((directions) => layOut(graph, directions)));
  const clear = all.filter((layout) => !crossesHeading(layout, graph));
  const layouts = clear.length > 0 ? clear : all;
  const misfit = (layout: Layout) => Math.max(layout.width / paneRatio, layout.height);
  return layouts.reduce((a, b) => (misfit(b) < misfit(a) ? b : a));
}

/** Whether a line crosses the lines of text that a compound state begins with. */
function crossesHeading({ boxes, routes }: Layout, graph: MachineGraph): boolean {
  const compounds = new Set(graph.nodes.map(({ parent }) => parent));
  const headings = graph.nodes.flatMap((node) => {
    const at = boxes.get(node.id);
    return at && compounds.has(node.id) ? [{ x: at.x, y: at.y, ...boxSize(node, internalsOf(graph, node.id)) }] : [];
  });
  return [...routes.values()].some(({ points }) =>
    points.slice(1).some((point, index) => {
      const before = points[index] ?? point;
      const [left, right] = [Math.min(before.x, point.x), Math.max(before.x, point.x)];
      const [top, bottom] = [Math.min(before.y, point.y), Math.max(before.y, point.y)];
      return headings.some(
        ({ x, y, width, height }) =>
          left < x + width - font.pad && right > x + font.pad && top < y + height - font.pad && bottom > y + font.pad,
      );
    }),
  );
}

export function drawChart(graph: MachineGraph, layout: Layout): Chart {
  const nodes = graph.nodes.map((node): ChartNode => {
    const box = layout.boxes.get(node.id);
    if (!box) throw new Error(`State ${node.id} of ${graph.name} was not laid out.`);
    return { ...node, ...box };
  });
  const edges = new Map<string, ChartEdge>();
  for (const bundle of bundlesOf(graph)) {
    const route = layout.routes.get(bundle.id);
    if (!route) throw new Error(`Transition ${bundle.id} of ${graph.name} was not laid out.`);
    for (const edge of stack(bundle.edges, route.label, route.points)) edges.set(edge.id, edge);
  }
  for (const node of nodes) {
    // Internal transitions follow the lines that every box begins with.
    const y = node.y + font.pad + font.title + boxLines(node).length * font.line;
    for (const edge of stack(internalsOf(graph, node.id), { x: node.x + font.pad, y }, [])) edges.set(edge.id, edge);
  }
  return {
    name: graph.name,
    description: graph.description,
    width: layout.width,
    height: layout.height,
    nodes,
    edges: graph.edges.flatMap((edge) => edges.get(edge.id) ?? []),
  };
}

/** Labels of transitions below one another, from the given place down. */
function stack(
  edges: readonly GraphEdge[],
  at: { x: number; y: number },
  points: readonly { x: number; y: number }[],
): ChartEdge[] {
  let y = at.y;
  return edges.map(({ internal: _, ...edge }) => {
    const lines = edgeLines(edge);
    const labelAt = { x: at.x, y };
    y += lines.length * font.line;
    return { ...edge, label: lines.join('\n'), labelAt, points: [...points] };
  });
}
