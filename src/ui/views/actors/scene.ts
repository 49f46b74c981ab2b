import { bundlesOf, framesOf, grid, isSpine, type Picture } from '../../../inspect/browser.ts';
import type { Chart, ChartEdge } from '../../../protocol/index.ts';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

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

/** Label beside a line. */
export interface PlacedWords extends Box {
  readonly text: string;
}

/** Largest width of a character in a label, in CSS pixels. */
const wordsCharacter = 6.3;

/** Places labels beside their lines, in order, where they cover no box, no name and few lines. Leaves out labels without space. */
export function placeWords(
  scene: Scene,
  wanted: readonly { readonly line: Line; readonly text: string }[],
): PlacedWords[] {
  const blocked: Box[] = [
    ...[...scene.boxes]
      .filter(([id]) => !scene.frames.has(id))
      .map(([, box]) => ({ ...box, y: box.y - 10, height: box.height + 12 })),
    ...scene.names.values(),
  ];
  const placed: PlacedWords[] = [];
  for (const { line, text } of wanted) {
    const size = { width: text.length * wordsCharacter + 6, height: 14 };
    let best: { readonly box: Box; readonly covered: number } | undefined;
    for (const { x, y } of besideOf(line.points, size)) {
      const box = { x, y, ...size };
      const isOutside = x < 4 || y < 2 || x + size.width > scene.width - 4 || y + size.height > scene.height - 2;
      if (isOutside || blocked.some((other) => meet(box, other))) continue;
      const covered = scene.lines.filter(({ points }) =>
        segmentsOf(points).some((segment) => meet(box, segment)),
      ).length;
      if (covered < (best?.covered ?? 3)) best = { box, covered };
    }
    if (!best) continue;
    placed.push({ ...best.box, text });
    blocked.push(best.box);
  }
  return placed;
}

/** Possible corners for a label beside each long segment of a line. */
function besideOf(points: readonly Point[], { width, height }: Pick<Box, 'width' | 'height'>): Point[] {
  return segmentsOf(points)
    .sort((a, b) => b.width + b.height - a.width - a.height)
    .flatMap(({ x, y, width: across, height: down }) =>
      [0.5, 0.25, 0.75].flatMap((part) =>
        down === 0
          ? [
              { x: x + across * part - width / 2, y: y - height - 2 },
              { x: x + across * part - width / 2, y: y + 3 },
            ]
          : [
              { x: x + 4, y: y + down * part - height / 2 },
              { x: x - width - 4, y: y + down * part - height / 2 },
            ],
      ),
    );
}

const segmentsOf = (points: readonly Point[]): Box[] =>
  points.slice(1).map((point, index) => {
    const before = points[index] ?? point;
    return {
      x: Math.min(before.x, point.x),
      y: Math.min(before.y, point.y),
      width: Math.abs(before.x - point.x),
      height: Math.abs(before.y - point.y),
    };
  });

const meet = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
