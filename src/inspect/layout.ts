import type { ELK, ElkEdgeSection, ElkExtendedEdge, ElkNode, ElkPort } from 'elkjs';
import { bundlesOf, type EdgeBundle, internalsOf } from './bundles.ts';
import type { GraphNode, MachineGraph } from './graph.ts';
import { boxSize, edgeLines, linesSize } from './measure.ts';

export type Direction = 'DOWN' | 'RIGHT';
interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where everything is; coordinates are absolute. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, { x: number; y: number; width: number; height: number }>;
  readonly routes: ReadonlyMap<string, { readonly points: Point[]; readonly label: Point }>;
}

const spacing = {
  'elk.algorithm': 'layered',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.cycleBreaking.strategy': 'DEPTH_FIRST',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.edgeLabels.sideSelection': 'ALWAYS_DOWN',
  'elk.layered.spacing.nodeNodeBetweenLayers': '20',
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '9',
  'elk.spacing.nodeNode': '20',
  'elk.spacing.edgeNode': '14',
  'elk.spacing.edgeEdge': '10',
  'elk.spacing.edgeLabel': '3',
  'elk.spacing.labelLabel': '6',
  'elk.spacing.portPort': '12',
  'elk.spacing.nodeSelfLoop': '14',
  'elk.randomSeed': '1',
};

/** Distance of inner states from the border of a state. */
const inset = 16;

/**
 * Lays a graph out with a direction of flow for each depth of nesting (the last one holds for all deeper states).
 * Each compound state is laid out by itself, so that a flow to the right may hold states that flow down; an arrow that
 * crosses the border of a compound state passes through a port there and is put together again at the end.
 */
export async function layOut(graph: MachineGraph, directions: readonly Direction[]): Promise<Layout> {
  elk ??= loadElk();
  const drawing = new Drawing(graph, directions);
  return drawing.read(await (await elk).layout<ElkNode>(drawing.canvas));
}

let elk: Promise<ELK> | undefined;

/** A CommonJS module: its `module.exports`, which Node hands over as the default export, is the constructor. */
async function loadElk(): Promise<ELK> {
  const { default: exported } = await import('elkjs/lib/elk.bundled.js');
  const Elk = exported as unknown as new () => ELK;
  return new Elk();
}

/** ELK wants ids that are not empty; the canvas around the machine has one that no state can have. */
const elkId = (id: string): string => `n:${id}`;
const canvasId = 'canvas';

class Drawing {
  readonly canvas: ElkNode;
  readonly #graph: MachineGraph;
  readonly #directions: readonly Direction[];
  readonly #nodes = new Map<string, GraphNode>();
  readonly #ports = new Map<string, ElkPort[]>();
  readonly #edges = new Map<string, ElkExtendedEdge[]>();
  /** Ids of the pieces of each bundle's line, from source to target; the label is on the piece named `labelled`. */
  readonly #pieces = new Map<string, { readonly ids: string[]; readonly labelled: string }>();

  constructor(graph: MachineGraph, directions: readonly Direction[]) {
    this.#graph = graph;
    this.#directions = directions;
    for (const node of graph.nodes) this.#nodes.set(node.id, node);
    for (const bundle of bundlesOf(graph)) this.#route(bundle);
    const root = graph.nodes.find((node) => node.parent === null);
    if (!root) throw new Error(`Machine ${graph.name} has no root state.`);
    this.canvas = {
      id: canvasId,
      layoutOptions: {
        ...spacing,
        'elk.direction': this.#direction(0),
        'elk.padding': '[top=8,left=8,bottom=8,right=8]',
        'elk.json.shapeCoords': 'ROOT',
        'elk.json.edgeCoords': 'ROOT',
      },
      children: [this.#node(root)],
      edges: this.#edges.get(canvasId) ?? [],
    };
  }

  #direction(depth: number): Direction {
    return this.#directions[Math.min(depth, this.#directions.length - 1)] ?? 'DOWN';
  }

  #ancestors(id: string): string[] {
    const parent = this.#nodes.get(id)?.parent;
    return parent === null || parent === undefined ? [] : [parent, ...this.#ancestors(parent)];
  }

  #route(bundle: EdgeBundle): void {
    const { source, target } = bundle;
    const above = this.#ancestors(source);
    const isOutward = above.includes(target);
    const isInward = this.#ancestors(target).includes(source);
    const home = isInward
      ? source
      : isOutward
        ? target
        : source === target
          ? (above[0] ?? canvasId)
          : (above.find((id) => this.#ancestors(target).includes(id)) ?? canvasId);

    const ids: string[] = [];
    let from = isInward ? this.#port(source, bundle.id, 'inward') : this.#end(source, bundle, 'out');
    for (const border of isInward ? [] : above.slice(0, above.indexOf(home))) {
      const port = this.#port(border, bundle.id, 'out');
      ids.push(this.#piece(border, bundle.id, from, port));
      from = port;
    }
    const tail: { container: string; port: string; to: string }[] = [];
    let to = isOutward ? this.#port(target, bundle.id, 'out') : this.#end(target, bundle, 'in');
    const aboveTarget = this.#ancestors(target);
    for (const border of isOutward ? [] : aboveTarget.slice(0, Math.max(0, aboveTarget.indexOf(home)))) {
      const port = this.#port(border, bundle.id, 'in');
      tail.unshift({ container: border, port, to });
      to = port;
    }
    const labelled = this.#piece(home, bundle.id, from, to, bundle);
    ids.push(labelled);
    for (const piece of tail) ids.push(this.#piece(piece.container, bundle.id, piece.port, piece.to));
    this.#pieces.set(bundle.id, { ids, labelled });
  }

  /** Where a line ends at a state: anywhere on a simple one, at a port of its own on one that holds others. */
  #end(node: string, bundle: EdgeBundle, way: 'in' | 'out'): string {
    const isCompound = this.#graph.nodes.some((child) => child.parent === node);
    return isCompound && bundle.source !== bundle.target ? this.#port(node, bundle.id, way) : elkId(node);
  }

  /**
   * A place on the border of a compound state where a line passes or ends. One that leads from the state itself to a state
   * inside begins on the right: it would cross the text at the top.
   */
  #port(node: string, bundle: string, way: 'in' | 'out' | 'inward'): string {
    const ports = this.#ports.get(node) ?? [];
    const flow = this.#direction(this.#ancestors(node).length);
    const side = {
      inward: 'EAST',
      ...(flow === 'RIGHT' ? { in: 'WEST', out: 'EAST' } : { in: 'NORTH', out: 'SOUTH' }),
    };
    const id = `p:${node}:${bundle}`;
    ports.push({ id, width: 0, height: 0, layoutOptions: { 'elk.port.side': side[way] } });
    this.#ports.set(node, ports);
    return id;
  }

  #piece(container: string, bundleId: string, from: string, to: string, labelled?: EdgeBundle): string {
    const edges = this.#edges.get(container) ?? [];
    const id = `${bundleId}@${container}`;
    const size = labelled && linesSize(labelled.edges.flatMap(edgeLines));
    const label = size && { text: bundleId, ...size };
    edges.push({ id, sources: [from], targets: [to], ...(label && { labels: [label] }) });
    this.#edges.set(container, edges);
    return id;
  }

  #node(node: GraphNode): ElkNode {
    const children = this.#graph.nodes.filter((child) => child.parent === node.id);
    const box = boxSize(node, internalsOf(this.#graph, node.id));
    if (children.length === 0) return { id: elkId(node.id), width: box.width, height: box.height };
    const ports = this.#ports.get(node.id) ?? [];
    return {
      id: elkId(node.id),
      ports,
      children: children.map((child) => this.#node(child)),
      edges: this.#edges.get(node.id) ?? [],
      layoutOptions: {
        ...spacing,
        'elk.direction': this.#direction(this.#ancestors(node.id).length + 1),
        'elk.padding': `[top=${box.height + 6},left=${inset},bottom=${inset},right=${inset}]`,
        'elk.nodeSize.constraints': 'MINIMUM_SIZE',
        'elk.nodeSize.minimum': `(${box.width},${box.height})`,
        ...(ports.length > 0 && { 'elk.portConstraints': 'FIXED_SIDE' }),
      },
    };
  }

  read(drawn: ElkNode): Layout {
    const boxes = new Map<string, { x: number; y: number; width: number; height: number }>();
    const edges = new Map<string, ElkExtendedEdge>();
    const visit = (shape: ElkNode): void => {
      const { x = 0, y = 0, width = 0, height = 0 } = shape;
      if (shape.id !== canvasId) boxes.set(shape.id.slice(2), { x, y, width, height });
      for (const edge of shape.edges ?? []) edges.set(edge.id, edge);
      shape.children?.forEach(visit);
    };
    visit(drawn);
    const routes = new Map<string, { points: Point[]; label: Point }>();
    for (const [bundle, { ids, labelled }] of this.#pieces) {
      const points = ids.flatMap((id) => (edges.get(id)?.sections ?? []).flatMap(pointsOf));
      const { x = 0, y = 0 } = edges.get(labelled)?.labels?.[0] ?? {};
      routes.set(bundle, { points: straighten(points), label: { x: x + 3, y } });
    }
    return { width: Math.ceil(drawn.width ?? 0), height: Math.ceil(drawn.height ?? 0), boxes, routes };
  }
}

function pointsOf(section: ElkEdgeSection): Point[] {
  return [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map(({ x, y }) => ({ x, y }));
}

/** Leaves out points that are not a corner: those where two pieces of a line were joined, and doubles. */
function straighten(points: readonly Point[]): Point[] {
  const kept: Point[] = [];
  for (const point of points) {
    const last = kept.at(-1);
    const before = kept.at(-2);
    if (last && isSame(last, point)) continue;
    if (last && before && isStraight(before, last, point)) kept.pop();
    kept.push(point);
  }
  return kept;
}

const near = (a: number, b: number): boolean => Math.abs(a - b) < 0.5;
const isSame = (a: Point, b: Point): boolean => near(a.x, b.x) && near(a.y, b.y);
const isStraight = (a: Point, b: Point, c: Point): boolean =>
  (near(a.x, b.x) && near(b.x, c.x)) || (near(a.y, b.y) && near(b.y, c.y));
