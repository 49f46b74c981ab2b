import type { GraphEdge, GraphNode } from './graph.ts';

/**
 * Sizes of text in a chart, in CSS pixels. The drawing (`svg.ts`, the page) uses the same sizes, so boxes and labels
 * have room for their text. Small text is monospaced: its width follows from its length in every font.
 */
export const chartFont = { title: 20, line: 14, pad: 10, titleCharacter: 7.8, character: 6.65 } as const;

/** Longest line of a label that is not one long word, in characters. */
const lineLength = 26;
/** Separates the trigger of a transition from its actions, as in UML. */
const actionMark = '/ ';

/** Lines of a box below its name: invoked actors, then entry and exit actions. */
export function boxLines(node: Pick<GraphNode, 'invokes' | 'entry' | 'exit'>): string[] {
  return [
    ...node.invokes.map((name) => `◌ ${name}`),
    ...node.entry.map((name) => `↘ ${name}`),
    ...node.exit.map((name) => `↗ ${name}`),
  ];
}

type EdgeText = Pick<GraphEdge, 'event' | 'guard' | 'actions' | 'delayMs'>;

/** Lines of an arrow: event and guard, on two lines when one would be long, then the actions, on as few lines as possible. */
export function edgeLines(edge: EdgeText): string[] {
  return [...causeLines(edge), ...actionLines(edge.actions)];
}

/** Trigger of a transition without its guard; a delay with its length if the machine defines it. */
export function causeOf({ event, delayMs }: Pick<EdgeText, 'event' | 'delayMs'>): string {
  return delayMs === undefined ? event : delayed(event, delayMs);
}

function causeLines(edge: EdgeText): string[] {
  const { guard } = edge;
  const cause = causeOf(edge);
  if (guard === null) return [cause];
  const condition = `[${guard}]`;
  const oneLine = `${cause} ${condition}`;
  return oneLine.length <= lineLength ? [oneLine] : [cause, condition];
}

/** Adds the length that the machine defines to `after(approvalTimeout)`: `after(approvalTimeout 5 min)`. */
function delayed(event: string, delayMs: number): string {
  const name = event.replace(/^after\((.*)\)$/, '$1');
  return Number(name) === delayMs ? `after(${duration(delayMs)})` : `after(${name} ${duration(delayMs)})`;
}

/** Milliseconds in the largest unit that needs no fraction. */
function duration(milliseconds: number): string {
  if (milliseconds === 0 || milliseconds % 1_000 !== 0) return `${milliseconds} ms`;
  return milliseconds % 60_000 === 0 ? `${milliseconds / 60_000} min` : `${milliseconds / 1_000} s`;
}

function actionLines(actions: readonly string[]): string[] {
  const lines: string[] = [];
  for (const action of actions) {
    const longer = lines.length === 0 ? undefined : `${lines.at(-1)}, ${action}`;
    if (longer !== undefined && longer.length <= lineLength) lines[lines.length - 1] = longer;
    else lines.push(`${actionMark}${action}`);
  }
  return lines;
}

/** Room for lines of small text. */
export function linesSize(lines: readonly string[]): { width: number; height: number } {
  const longest = Math.max(0, ...lines.map((line) => line.length));
  return { width: Math.ceil(longest * chartFont.character) + 10, height: lines.length * chartFont.line };
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
