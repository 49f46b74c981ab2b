import type { GraphEdge, GraphNode } from './graph.ts';

/**
 * Sizes of text in a chart, in CSS pixels. The drawing (`svg.ts`, the page) uses the same sizes, so boxes and labels
 * have room for what is written in them. Small text is monospaced: its width follows from its length in every font.
 */
export const chartFont = { title: 20, line: 14, pad: 10, titleCharacter: 7.8, character: 6.4 } as const;

/** What a box says below its name: what runs while the state is active, then what happens on the way in and out. */
export function boxLines(node: Pick<GraphNode, 'invokes' | 'entry' | 'exit'>): string[] {
  return [
    ...node.invokes.map((name) => `◌ ${name}`),
    ...node.entry.map((name) => `↘ ${name}`),
    ...node.exit.map((name) => `↗ ${name}`),
  ];
}

/** What an arrow says: event and guard, on two lines when one would be long. Actions are told on demand. */
export function edgeLines(edge: Pick<GraphEdge, 'event' | 'guard'>): string[] {
  if (edge.guard === null) return [edge.event];
  const guard = `[${edge.guard}]`;
  const oneLine = `${edge.event} ${guard}`;
  return oneLine.length <= 26 ? [oneLine] : [edge.event, guard];
}

/** Room for lines of small text. */
export function linesSize(lines: readonly string[]): { width: number; height: number } {
  const longest = Math.max(0, ...lines.map((line) => line.length));
  return { width: Math.ceil(longest * chartFont.character) + 6, height: lines.length * chartFont.line };
}

/** Room for a box without children: its name, its lines, its internal transitions. */
export function boxSize(node: GraphNode, internals: readonly GraphEdge[]): { width: number; height: number } {
  const { width, height } = linesSize([...boxLines(node), ...internals.flatMap(edgeLines)]);
  const title = Math.ceil(node.label.length * chartFont.titleCharacter) + 24;
  return {
    width: Math.max(width, title, 64) + 2 * chartFont.pad,
    height: height + chartFont.title + 2 * chartFont.pad - (height === 0 ? 2 : 0),
  };
}
