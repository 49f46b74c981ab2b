import type { GraphEdge, MachineGraph } from './graph.ts';

/** Columns of transitions that no event from outside takes. They come last, in this order. */
const ownKinds = ['done', 'error', 'after', 'always'];

/** The column of a transition: its event, or the kind of cause within the state. */
function columnOf({ event }: Pick<GraphEdge, 'event'>): string {
  const kind = event.replace(/\(.*$/s, '');
  return ownKinds.includes(kind) ? kind : event;
}

/** The states that have no child states, in document order: a running machine is in one of them. */
function leavesOf({ nodes }: MachineGraph): readonly string[] {
  const parents = new Set(nodes.map(({ parent }) => parent));
  return nodes.flatMap(({ id }) => (parents.has(id) ? [] : [id]));
}

/** The leaf that is entered when `id` is entered. */
function entryOf(graph: MachineGraph, id: string): string {
  const child = graph.nodes.find(({ parent, initial }) => parent === id && initial);
  return child ? entryOf(graph, child.id) : id;
}

/** A state and the states around it, innermost first; the machine itself, '', is the last. */
function withAncestors(id: string): string[] {
  const path = id.split('.');
  return [...path.map((_, index) => path.slice(0, path.length - index).join('.')), ''];
}

/** Transitions that may be taken in a leaf, in the order in which they are tried, up to the first without a guard. */
function candidatesOf(graph: MachineGraph, leaf: string, column: string): GraphEdge[] {
  const found: GraphEdge[] = [];
  // A machine in a final state has ended.
  if (graph.nodes.some(({ id, kind }) => id === leaf && kind === 'final')) return found;
  const path = withAncestors(leaf);
  const isAtWork = graph.nodes.some(({ id, invokes }) => path.includes(id) && invokes.length > 0);
  for (const source of path) {
    for (const edge of graph.edges) {
      if (edge.source !== source || columnOf(edge) !== column || (column === 'error' && !isAtWork)) continue;
      found.push(edge);
      if (edge.guard === null && !ownKinds.includes(column)) return found;
    }
  }
  return found;
}

/** Characters in a line that a screen shows without scrolling. Wider matrices get one space between columns instead of two. */
const maxColumns = 120;

const letter = (index: number): string => String.fromCharCode(65 + index);

/**
 * Plain text matrix of a machine: a numbered row for each state without child states, a column for each event. A cell has the
 * numbers of the states that may follow, `=` where the machine does something and stays, nothing where it ignores the event.
 */
export function matrixOf(graph: MachineGraph): string {
  const leaves = leavesOf(graph);
  const found = [...new Set(graph.edges.map(columnOf))];
  const columns = [
    ...found.filter((name) => !ownKinds.includes(name)),
    ...ownKinds.filter((own) => found.includes(own)),
  ];
  const cellOf = (leaf: string, column: string): string => {
    const results = candidatesOf(graph, leaf, column).map((edge) =>
      edge.internal ? '=' : String(leaves.indexOf(entryOf(graph, edge.target)) + 1),
    );
    return [...new Set(results)].join('/');
  };
  const rows = [
    ['', '', ...columns.map((_, index) => letter(index))],
    ...leaves.map((leaf, index) => [String(index + 1), leaf, ...columns.map((column) => cellOf(leaf, column))]),
  ];
  const widths = rows[0]?.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0))) ?? [];
  const isWide = widths.reduce((sum, width) => sum + width + 2, -2) > maxColumns;
  const lines = rows.map((row) =>
    row
      .map((cell, index) => (index === 0 ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0)))
      .join(isWide ? ' ' : '  ')
      .trimEnd(),
  );
  const legend = columns.map((name, index) => `${letter(index)} ${name}`);
  return `${[...lines, '', ...wrapped(legend)].join('\n')}\n`;
}

/** Items on lines of at most 100 characters. */
function wrapped(items: readonly string[]): string[] {
  const lines: string[] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last === undefined || last.length + item.length > 97) lines.push(item);
    else lines[lines.length - 1] = `${last}   ${item}`;
  }
  return lines;
}
