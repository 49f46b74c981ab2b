import type { Chart, ChartEdge } from '../protocol/index.ts';
import { bundlesOf } from './bundles.ts';
import { framesOf, grid, isSpine, type Picture } from './picture.ts';
import type { Box } from './places.ts';

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Transitions between the same two states, as one line. */
export interface Line {
  /** `<source>→<target>` */
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly edges: readonly ChartEdge[];
  readonly points: readonly Point[];
  /** Part of the normal loop. */
  readonly isSpine: boolean;
}

/** Geometry of a drawing, in CSS pixels at 100 %. It depends on the machine only. */
export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** States that are drawn as frames around others. */
  readonly frames: ReadonlySet<string>;
  /** Rectangles around the names of frames; empty in a whole chart. */
  readonly names: ReadonlyMap<string, Box>;
  readonly lines: readonly Line[];
  /** Draws every label of the chart. */
  readonly isWhole: boolean;
}

/** Drawing of a size class; without a picture, the whole chart in the layout of the build. */
export function sceneOf(chart: Chart, picture: Picture | undefined): Scene {
  const edges = chart.edges.map((edge) => ({ ...edge, internal: edge.points.length === 0 }));
  const boxAt = (index: number): Box => {
    const [x = 0, y = 0, width = 0, height = 0] = picture?.boxes.slice(4 * index, 4 * index + 4) ?? [];
    return { x: x * grid, y: y * grid, width: width * grid, height: height * grid };
  };
  const boxes = new Map(chart.nodes.map((node, index) => [node.id, picture ? boxAt(index) : node]));
  const frames = framesOf(chart.nodes);
  const named = chart.nodes.filter(({ id }) => id !== '' && frames.has(id));
  const nameAt = (index: number, y = 0): Box => {
    const [x = 0, width = 0] = picture?.names.slice(2 * index, 2 * index + 2) ?? [];
    return { x: x * grid, y: y - 7, width: width * grid, height: 14 };
  };
  return {
    width: picture ? picture.width * grid : chart.width,
    height: picture ? picture.height * grid : chart.height,
    boxes,
    frames,
    names: new Map(picture ? named.map(({ id }, index) => [id, nameAt(index, boxes.get(id)?.y)]) : []),
    lines: bundlesOf({ edges }).map((bundle, index) => ({
      ...bundle,
      points: picture ? pairs(picture.lines[index] ?? []) : (bundle.edges[0]?.points ?? []),
      isSpine: isSpine(chart.nodes, bundle.source, bundle.target),
    })),
    isWhole: picture === undefined,
  };
}

const pairs = (numbers: readonly number[]): Point[] =>
  Array.from({ length: Math.floor(numbers.length / 2) }, (_, index) => ({
    x: (numbers[2 * index] ?? 0) * grid,
    y: (numbers[2 * index + 1] ?? 0) * grid,
  }));
