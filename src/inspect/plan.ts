import {
  type Detail,
  detailBoxSize,
  detailFont,
  detailLabelSize,
  detailOf,
  type Level,
  leavesOfGraph,
  levels,
} from './detail.ts';
import type { GraphEdge, MachineGraph } from './graph.ts';
import { compactSpacing, type Direction, type Layout, layOut } from './layout.ts';
import { legible, type Pane, type Picture, panes } from './picture.ts';
import type { Words } from './words.ts';

const flows: readonly (readonly Direction[])[] = [['DOWN'], ['RIGHT'], ['DOWN', 'RIGHT'], ['RIGHT', 'DOWN']];
/** Levels for each pane: on a desktop no state beside the path is left out. */
const levelsOf: Readonly<Record<Pane, readonly Level[]>> = { desktop: [0, 1, 2, 3, 4, 5, 8], phone: levels };

/**
 * Draws a machine around a simple state for a pane: at the first level at which its words can be read when all of it is shown.
 * Falls back to the last level.
 */
export async function pictureOf(graph: MachineGraph, words: Words, focus: string, pane: Pane): Promise<Picture> {
  const allowed = levelsOf[pane];
  for (const level of allowed) {
    const detail = detailOf(graph, words, focus, level, pane);
    if (level !== allowed.at(-1) && isTooFull(detail, pane)) continue;
    const best = await bestOf(graph.name, detail, pane);
    if (level === allowed.at(-1) || scaleIn(best, pane) * detailFont.words >= legible)
      return encoded(detail, level, best);
  }
  throw new Error(`no level of ${graph.name} fits`);
}

/** Every simple state of a machine, drawn for each pane. */
export async function picturesOf(graph: MachineGraph, words: Words): Promise<Record<string, Record<Pane, Picture>>> {
  const pictures: Record<string, Record<Pane, Picture>> = {};
  for (const leaf of leavesOfGraph(graph.nodes)) {
    pictures[leaf] = {
      desktop: await pictureOf(graph, words, leaf, 'desktop'),
      phone: await pictureOf(graph, words, leaf, 'phone'),
    };
  }
  return pictures;
}

const scaleIn = ({ width, height }: Pick<Layout, 'width' | 'height'>, pane: Pane): number =>
  Math.min(panes[pane].width / width, panes[pane].height / height);

/** Boxes and words alone fill more of the pane than any layout leaves for them. */
function isTooFull(detail: Detail, pane: Pane): boolean {
  const { width, height } = panes[pane];
  const area = [
    ...detail.nodes.filter(({ isOpen }) => !isOpen).map(detailBoxSize),
    ...detail.edges.filter(({ lines }) => lines.length > 0).map(({ lines }) => detailLabelSize(lines)),
  ].reduce((sum, box) => sum + box.width * box.height, 0);
  return area > 0.6 * width * height * (detailFont.words / legible) ** 2;
}

async function bestOf(name: string, detail: Detail, pane: Pane): Promise<Layout> {
  let best: Layout | undefined;
  const graph = graphOfDetail(name, detail);
  const lines = new Map(detail.edges.map((edge) => [edge.id, edge.lines]));
  const initial = new Map(detail.nodes.map((node) => [node.id, node]));
  for (const directions of detail.nodes.some(({ isOpen }) => isOpen) ? flows : flows.slice(0, 2)) {
    const layout = await layOut(graph, directions, {
      spacing: compactSpacing,
      inset: 10,
      boxOf: ({ id }) => {
        const node = initial.get(id);
        return node ? detailBoxSize(node) : { width: 0, height: 0 };
      },
      labelOf: ({ id }) => {
        const words = lines.get(id) ?? [];
        return words.length > 0 ? detailLabelSize(words) : undefined;
      },
    });
    if (!best || scaleIn(layout, pane) > scaleIn(best, pane)) best = layout;
  }
  if (!best) throw new Error('no layout');
  return best;
}

/** A detail as a graph that can be laid out: each arrow one transition, the machine around them. */
function graphOfDetail(name: string, { nodes, edges }: Detail): MachineGraph {
  const plain = { description: '', invokes: [], entry: [], exit: [] };
  return {
    name,
    description: '',
    nodes: [
      { ...plain, id: '', parent: null, label: '', kind: 'compound', initial: false },
      ...nodes.map(({ id, parent, label, kind, initial }) => ({ ...plain, id, parent, label, kind, initial })),
    ],
    edges: edges.map(
      ({ id, source, target }): GraphEdge => ({
        id,
        source,
        target,
        event: id,
        guard: null,
        actions: [],
        internal: false,
      }),
    ),
  };
}

function encoded({ nodes, edges }: Detail, level: Level, layout: Layout): Picture {
  return {
    level,
    width: layout.width,
    height: layout.height,
    boxes: nodes.flatMap(({ id }) => {
      const { x, y, width, height } = layout.boxes.get(id) ?? { x: 0, y: 0, width: 0, height: 0 };
      return [x, y, width, height].map(Math.round);
    }),
    arrows: edges.map(({ id }) => {
      const { label, points } = layout.routes.get(id) ?? { label: { x: 0, y: 0 }, points: [] };
      return [label, ...points].flatMap(({ x, y }) => [Math.round(x), Math.round(y)]);
    }),
  };
}
