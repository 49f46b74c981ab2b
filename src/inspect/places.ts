import type { Places } from '../../machines/index.ts';
import type { GraphNode, MachineGraph } from './graph.ts';
import { grid, type SizeClass, sizes } from './picture.ts';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Boxes of simple states and frames of composite ones, by id; the frame of the machine is its whole drawing. */
export interface Placement {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** Place of the name of each frame on its upper border. */
  readonly names: ReadonlyMap<string, Span>;
}

export interface Span {
  readonly x: number;
  readonly width: number;
}

/** Steps of the upper border that the count of a box may cover, from its right end. */
export const countWidth = 11;

/** Height of a box, and the part of it above its middle, which is on the grid. */
export const boxHeight = 5;
const above = 2;
/** Least distance of boxes and frames; a drawing with room has more. */
const least = { x: 2, y: 3 };
const most = { x: 14, y: 10 };
/** Distance of a frame from the boxes in it. Its name stands on its upper border. */
const inset = { x: 2, top: 3, bottom: 2 };
/** Room for lines around everything. */
const margin = 2;

interface Cell {
  readonly id: string;
  readonly column: number;
  readonly row: number;
  /** Ids of the composite states around it, outermost first. */
  readonly around: readonly string[];
  readonly width: number;
}

/** Places of all states of a machine in a drawing of a class. Throws when they do not fit, or when the rows are invalid. */
export function placesOf(graph: MachineGraph, places: Places | undefined, size: SizeClass): Placement {
  const rows = places?.[size] ?? (size === 'phone' ? undefined : places?.laptop) ?? defaultRows(graph.nodes, size);
  const cells = cellsOf(graph, rows);
  const faults = faultsOf(graph, cells);
  if (faults.length > 0) throw new Error(`Places of ${graph.name} (${size}): ${faults.join('; ')}.`);
  const columns = solve(cells, 'x', sizes[size].width / grid, new Set());
  const crowded = columns ? crowdedFrames(graph, cells, columns.centres) : new Set<string>();
  const roomy = solve(cells, 'y', sizes[size].height / grid, crowded);
  const lines = roomy ?? solve(cells, 'y', sizes[size].height / grid, new Set());
  if (!columns || !lines)
    throw new Error(
      `Places of ${graph.name} (${size}): too ${columns ? 'high' : 'wide'} for ${sizes[size].width} × ${sizes[size].height}.`,
    );
  const boxes = new Map<string, Box>();
  for (const { id, column, row, width } of cells) {
    boxes.set(id, {
      x: (columns.centres[column] ?? 0) - width / 2,
      y: (lines.centres[row] ?? 0) - above,
      width,
      height: boxHeight,
    });
  }
  // Innermost frames first.
  for (const node of graph.nodes.toReversed()) {
    const inner = graph.nodes.filter(({ parent }) => parent === node.id).flatMap(({ id }) => boxes.get(id) ?? []);
    if (inner.length > 0 && node.id !== '')
      boxes.set(node.id, framed(inner, roomy !== undefined && crowded.has(node.id)));
  }
  boxes.set('', { x: 1, y: 1, width: columns.extent - 2, height: lines.extent - 2 });
  const names = graph.nodes.flatMap(({ id, label }) => {
    const box = boxes.get(id);
    const isFrame = id !== '' && !cells.some((cell) => cell.id === id);
    return box && isFrame ? [[id, namePlace(label, box, countsBelow(cells, id, columns.centres))] as const] : [];
  });
  return { width: columns.extent, height: lines.extent, boxes, names: new Map(names) };
}

/** Longest spine that is one row. */
const longestRow = 5;

/**
 * Places by lane: on a laptop the spine runs to the right, and back below when it is long, detours above it, exceptions below; else it
 * runs down, detours at its left, exceptions at its right. Final states stand on the last row.
 */
function defaultRows(nodes: readonly GraphNode[], size: SizeClass): string[] {
  const rows: string[][] = [];
  const put = (row: number, column: number, id: string): void => {
    rows[row] ??= [];
    const cells = rows[row];
    let free = column;
    while (cells[free] !== undefined && cells[free] !== '.') free += 1;
    for (let at = cells.length; at < free; at += 1) cells[at] = '.';
    cells[free] = id;
  };
  const spine = nodes.filter(({ meta }) => meta?.lane === 'spine').length;
  const half = spine > longestRow ? Math.ceil(spine / 2) : spine;
  const last =
    size === 'laptop' ? 4 : Math.max(...nodes.map(({ meta }) => (meta?.lane === 'end' ? 0 : (meta?.order ?? 0)))) + 1;
  for (const { id, meta } of nodes) {
    if (!meta) continue;
    const { lane, order } = meta;
    const isBack = order >= half;
    const column = isBack ? Math.max(0, 2 * half - 1 - order) : order;
    if (lane === 'end') put(last, order, id);
    else if (size !== 'laptop') put(order, { detour: 0, spine: 1, exception: 2 }[lane], id);
    else put({ detour: 0, spine: isBack ? 2 : 1, exception: 3 }[lane], column, id);
  }
  return rows.filter((cells) => cells !== undefined).map((cells) => cells.join(' '));
}

/** Rows of names as cells: `.` is an empty one. */
function cellsOf(graph: MachineGraph, rows: readonly string[]): Cell[] {
  return rows.flatMap((names, row) =>
    names
      .trim()
      .split(/\s+/)
      .flatMap((name, column): Cell[] => {
        if (name === '.') return [];
        const node = graph.nodes.find(({ id }) => id === name) ?? graph.nodes.find(({ id }) => id.endsWith(`.${name}`));
        if (!node) throw new Error(`${graph.name} has no state ${name}.`);
        return [{ id: node.id, column, row, around: aroundOf(graph.nodes, node.id), width: boxWidth(node) }];
      }),
  );
}

/** Even, so that the middle of a box is on the grid. */
const boxWidth = ({ label, initial }: GraphNode): number =>
  2 * Math.ceil((label.length * 6.5 + (initial ? 9 : 0) + 12) / (2 * grid));

function aroundOf(nodes: readonly GraphNode[], id: string): string[] {
  const parent = nodes.find((node) => node.id === id)?.parent;
  return parent ? [...aroundOf(nodes, parent), parent] : [];
}

/** Each simple state once; the states of a composite one form a rectangle that holds no other. */
function faultsOf({ nodes }: MachineGraph, cells: readonly Cell[]): string[] {
  const isComposite = (id: string) => nodes.some(({ parent }) => parent === id);
  const counts = nodes
    .filter(({ id }) => !isComposite(id))
    .flatMap(({ id }) => {
      const count = cells.filter((cell) => cell.id === id).length;
      return count === 1 ? [] : [`${id} stands there ${count} times`];
    });
  const intruders = nodes
    .filter(({ id }) => id !== '' && isComposite(id))
    .flatMap(({ id }) => {
      const inside = cells.filter(({ around }) => around.includes(id));
      return cells
        .filter((cell) => !inside.includes(cell) && overlap(inside, [cell], 'column') && overlap(inside, [cell], 'row'))
        .map((cell) => `${cell.id} lies in ${id}`);
    });
  const twice = cells.filter((cell) => !nodes.some(({ id }) => id === cell.id && !isComposite(id)));
  return [...counts, ...intruders, ...twice.map(({ id }) => `${id} is composite`)];
}

/** Whether the spans of two groups of cells have a column or a row in common. */
function overlap(a: readonly Cell[], b: readonly Cell[], along: 'column' | 'row'): boolean {
  const ends = (cells: readonly Cell[]) => {
    const at = cells.map((cell) => cell[along]);
    return [Math.min(...at), Math.max(...at)] as const;
  };
  const [[a0, a1], [b0, b1]] = [ends(a), ends(b)];
  return a0 <= b1 && b0 <= a1;
}

interface Apart {
  readonly first: number;
  readonly second: number;
  /** Distance of the middles without the gap. */
  readonly distance: number;
}

/** Middles of the columns or rows, with the largest gap that fits, and the extent; undefined: not even the least gap fits. */
function solve(
  cells: readonly Cell[],
  axis: 'x' | 'y',
  limit: number,
  tall: ReadonlySet<string>,
): { readonly centres: readonly number[]; readonly extent: number } | undefined {
  const [along, across] = axis === 'x' ? (['column', 'row'] as const) : (['row', 'column'] as const);
  const before = ({ width }: Cell) => (axis === 'x' ? width / 2 : above);
  const after = ({ width }: Cell) => (axis === 'x' ? width / 2 : boxHeight - above);
  const far = axis === 'x' ? inset.x : inset.bottom;
  const nearOf = (frames: readonly string[]) =>
    axis === 'x' ? inset.x * frames.length : sum(frames.map((frame) => inset.top + (tall.has(frame) ? 1 : 0)));
  // The count of a box in the first row stands above it: without a frame, outside of the margin.
  const countRoom = ({ around }: Cell) => (axis === 'y' && around.length === 0 ? 1 : 0);
  const count = Math.max(...cells.map((cell) => cell[along])) + 1;
  const apart: Apart[] = [];
  for (const a of cells) {
    for (const b of cells) {
      if (a[along] >= b[along]) continue;
      const groupOf = (frame: string) => cells.filter(({ around }) => around.includes(frame));
      // A frame that reaches to the other box lies beside it: the other axis keeps them apart.
      const outerA = outside(a, b).filter((frame) => groupOf(frame).every((cell) => cell[along] < b[along]));
      const outerB = outside(b, a).filter((frame) => groupOf(frame).every((cell) => cell[along] > a[along]));
      const [groupA, groupB] = [outerA[0], outerB[0]].map((frame, index) =>
        frame ? groupOf(frame) : index === 0 ? [a] : [b],
      );
      // Rows lie below each other everywhere; columns may overlap where their boxes are in different rows.
      if (axis === 'x' && !overlap(groupA ?? [a], groupB ?? [b], across)) continue;
      apart.push({
        first: a[along],
        second: b[along],
        distance: after(a) + before(b) + outerA.length * far + nearOf(outerB),
      });
    }
  }
  const starts = Array.from({ length: count }, (_, at) =>
    Math.max(
      0,
      ...cells.filter((cell) => cell[along] === at).map((cell) => before(cell) + countRoom(cell) + nearOf(cell.around)),
    ),
  );
  const ends = Array.from({ length: count }, (_, at) =>
    Math.max(0, ...cells.filter((cell) => cell[along] === at).map((cell) => after(cell) + cell.around.length * far)),
  );
  for (let gap = most[axis]; gap >= least[axis]; gap -= 1) {
    const low = starts.map((start) => start + margin);
    for (let at = 0; at < count; at += 1) {
      for (const { first, second, distance } of apart) {
        if (second === at) low[at] = Math.max(low[at] ?? 0, (low[first] ?? 0) + distance + gap);
      }
    }
    const extent = Math.max(...low.map((middle, at) => middle + (ends[at] ?? 0))) + margin;
    if (extent > limit) continue;
    const high = ends.map((end) => extent - end - margin);
    for (let at = count - 1; at >= 0; at -= 1) {
      for (const { first, second, distance } of apart) {
        if (first === at) high[at] = Math.min(high[at] ?? 0, (high[second] ?? 0) - distance - gap);
      }
    }
    return { centres: low.map((middle, at) => Math.floor((middle + (high[at] ?? middle)) / 2)), extent };
  }
  return undefined;
}

/** Frames around `a` that do not hold `b`, outermost first. */
const outside = (a: Cell, b: Cell): string[] => a.around.filter((id) => !b.around.includes(id));

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** Parts of a frame's upper border under which the counts of its first row stand. */
function countsBelow(cells: readonly Cell[], frame: string, columns: readonly number[]): Span[] {
  const inside = cells.filter(({ around }) => around.includes(frame));
  const first = Math.min(...inside.map(({ row }) => row));
  return inside
    .filter(({ row, around }) => row === first && around.at(-1) === frame)
    .map(({ column, width }) => ({ x: (columns[column] ?? 0) + width / 2 - countWidth, width: countWidth }));
}

/** Frames whose name finds no place beside these counts: they are higher by a step. */
function crowdedFrames(graph: MachineGraph, cells: readonly Cell[], columns: readonly number[]): Set<string> {
  const crowded = graph.nodes.filter(({ id, label }) => {
    const inside = cells.filter(({ around }) => around.includes(id));
    if (inside.length === 0) return false;
    const x = Math.min(...inside.map(({ column, width }) => (columns[column] ?? 0) - width / 2)) - inset.x;
    const end = Math.max(...inside.map(({ column, width }) => (columns[column] ?? 0) + width / 2)) + inset.x;
    return namePlace(label, { x, width: end - x }, countsBelow(cells, id, columns)).isCrowded;
  });
  return new Set(crowded.map(({ id }) => id));
}

/** The first place from the left at which a frame's name meets no count. */
function namePlace(label: string, frame: Span, counts: readonly Span[]): Span & { readonly isCrowded: boolean } {
  const width = Math.min(frame.width - 4, Math.ceil((label.length * 6.4 + 10) / grid));
  const [first, last] = [frame.x + 2, frame.x + frame.width - 2 - width];
  for (let x = first; x <= last; x += 1) {
    if (counts.every((count) => x + width <= count.x || x >= count.x + count.width))
      return { x, width, isCrowded: false };
  }
  return { x: first, width, isCrowded: true };
}

function framed(inner: readonly Box[], isTall: boolean): Box {
  const x = Math.min(...inner.map((box) => box.x)) - inset.x;
  const y = Math.min(...inner.map((box) => box.y)) - inset.top - (isTall ? 1 : 0);
  return {
    x,
    y,
    width: Math.max(...inner.map((box) => box.x + box.width)) + inset.x - x,
    height: Math.max(...inner.map((box) => box.y + box.height)) + inset.bottom - y,
  };
}
