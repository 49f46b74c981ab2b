/** Fixed drawings of the machines: complete, without a line through a box, small, and of this version of machine and code. */
import { brotliCompressSync } from 'node:zlib';
import t from 'tap';
import { catalogue } from '../../machines/index.ts';
import { currentDrawings, currentWhole, staleDrawings } from '../../scripts/drawings.ts';
import { bundlesOf } from '../../src/inspect/bundles.ts';
import { picturesOf } from '../../src/inspect/draw.ts';
import { decodeWhole, encodeWhole } from '../../src/inspect/encode.ts';
import { fingerprintOf } from '../../src/inspect/fingerprint.ts';
import { graphOf, type MachineGraph } from '../../src/inspect/graph.ts';
import { framesOf, grid, type Picture, sizeClasses, sizes } from '../../src/inspect/picture.ts';
import { placesOf } from '../../src/inspect/places.ts';
import { chartNamed } from './built-charts.ts';

const graphs = Object.entries(catalogue).map(([name, machine]) => graphOf(name, machine));
const graphNamed = (name: string): MachineGraph => {
  const graph = graphs.find((each) => each.name === name);
  if (!graph) throw new Error(`no machine ${name}`);
  return graph;
};

function drawingsOf(graph: MachineGraph) {
  const drawings = currentDrawings(graph);
  if (!drawings) throw new Error(`${graph.name} is not drawn: run "npm run docs"`);
  return drawings;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
interface Point {
  readonly x: number;
  readonly y: number;
}

function boxesOf({ nodes }: MachineGraph, { boxes }: Picture): Map<string, Box> {
  return new Map(
    nodes.map(({ id }, index) => {
      const [x = 0, y = 0, width = 0, height = 0] = boxes.slice(4 * index, 4 * index + 4);
      return [id, { x, y, width, height }];
    }),
  );
}

/** Every point of the grid on a line, ends included. */
function pointsOf(line: readonly number[]): Point[] {
  const corners = Array.from({ length: line.length / 2 }, (_, at) => ({
    x: line[2 * at] ?? 0,
    y: line[2 * at + 1] ?? 0,
  }));
  return corners.flatMap((corner, at) => {
    const next = corners[at + 1];
    if (!next) return [corner];
    const [dx, dy] = [next.x - corner.x, next.y - corner.y];
    return Array.from({ length: Math.abs(dx) + Math.abs(dy) }, (_, step) => ({
      x: corner.x + Math.sign(dx) * step,
      y: corner.y + Math.sign(dy) * step,
    }));
  });
}

const holds = (box: Box, { x, y }: Point): boolean =>
  x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
const isApart = (a: Box, b: Box): boolean =>
  a.x + a.width < b.x || b.x + b.width < a.x || a.y + a.height < b.y || b.y + b.height < a.y;

t.test('the drawings kept are of these machines and this drawing code', async (t) => {
  t.same(staleDrawings(), { machines: [], strays: [] }, 'run "npm run docs"');
});

t.test(
  'every simple state has a kind, a lane and an order, and a name that is unique but for ends of processes',
  (t) => {
    for (const { name, nodes } of graphs) {
      const simple = nodes.filter(({ id }) => !framesOf(nodes).has(id));
      t.same(
        simple.filter(({ meta }) => !meta).map(({ id }) => id),
        [],
        name,
      );
    }
    t.end();
  },
);

for (const graph of graphs) {
  t.test(
    `${graph.name}: each drawing holds every state and every transition, and no line touches a foreign box`,
    async (t) => {
      const { nodes, edges } = graph;
      const drawings = drawingsOf(graph);
      const frames = framesOf(nodes);
      const bundles = bundlesOf(graph);
      const listed = edges.filter(({ internal }) => internal);
      t.equal(bundles.flatMap((bundle) => bundle.edges).length + listed.length, edges.length, 'drawn and listed');
      for (const { id, kind } of nodes.filter(({ id }) => !frames.has(id))) {
        const around = (end: string) => id === end || id.startsWith(`${end}.`);
        t.ok(
          bundles.some(({ source, target }) => around(target) || (kind !== 'final' && around(source))),
          `${id} has an arrow`,
        );
      }
      for (const size of sizeClasses) {
        const picture = drawings.pictures[size];
        const { width, height } = sizes[size];
        t.ok(picture.width * grid <= width && picture.height * grid <= height, `${size} fits`);
        t.ok(brotliCompressSync(JSON.stringify(picture)).byteLength <= 1_024, `${size} is small`);
        t.same([picture.boxes.length, picture.lines.length], [4 * nodes.length, bundles.length]);

        const boxes = boxesOf(graph, picture);
        const simple = [...boxes].filter(([id]) => !frames.has(id));
        for (const [id, box] of simple) {
          t.ok(
            box.width > 0 && simple.every(([other, beside]) => other === id || isApart(box, beside)),
            `${id} is apart`,
          );
          for (const [frame, outer] of boxes) {
            if (!frames.has(frame)) continue;
            const isInside = frame === '' || id.startsWith(`${frame}.`);
            t.equal(isApart(box, outer), !isInside, `${id} and ${frame}`);
          }
        }

        const owners = new Map<string, Set<string>>();
        const passes = new Map<string, { readonly target: string; readonly across: boolean }[]>();
        for (const [at, { id, source, target }] of bundles.entries()) {
          const points = pointsOf(picture.lines[at] ?? []);
          const foreign = simple.filter(([box]) => box !== source && box !== target);
          t.ok(
            points.length > 1 && points.every((point) => !foreign.some(([, box]) => holds(box, point))),
            `${size} ${id}`,
          );
          for (const [step, point] of points.entries()) {
            const next = points[step + 1];
            if (!next) continue;
            const across = next.y === point.y;
            const piece = `${Math.min(point.x, next.x)} ${Math.min(point.y, next.y)} ${across}`;
            owners.set(piece, (owners.get(piece) ?? new Set()).add(target));
            if (step === 0) continue;
            const key = `${point.x} ${point.y}`;
            passes.set(key, [...(passes.get(key) ?? []), { target, across }]);
          }
        }
        const shared = [...owners.values()].filter((targets) => targets.size > 1);
        t.equal(shared.length, 0, `${size}: lines of different targets share no piece`);
        const crossings = [...passes.values()].filter((lines) =>
          lines.some((a) => lines.some((b) => a.target !== b.target && a.across !== b.across)),
        );
        t.ok(crossings.length <= 25, `${size}: ${crossings.length} crossings`);
      }
      const machine = catalogue[graph.name];
      t.equal(machine && fingerprintOf(await chartNamed(graph.name, machine)), drawings.fingerprint);
    },
  );
}

t.test('all drawings weigh at most 40 KiB', async (t) => {
  const bytes = graphs.map((graph) => brotliCompressSync(JSON.stringify(drawingsOf(graph))).byteLength);
  t.ok(bytes.reduce((sum, each) => sum + each, 0) <= 40 * 1_024);
});

t.test('drawings kept equal a fresh drawing', async (t) => {
  for (const name of ['stack-change', 'hub']) {
    const graph = graphNamed(name);
    t.same(picturesOf(graph, undefined), drawingsOf(graph).pictures);
    const whole = currentWhole(graph);
    if (!whole) throw new Error('not laid out');
    const { width, height, boxes, arrows } = whole;
    t.same(encodeWhole(graph, decodeWhole(graph, whole)), { width, height, boxes, arrows });
  }
});

t.test('rows that miss a state, repeat one or put one into a foreign composite state are refused', async (t) => {
  const graph = graphNamed('automation');
  const rows = [
    'waiting  queued     starting   working',
    'deciding .          .          interrupting',
    'paused   finished   backingOff removed',
  ];
  const place = (laptop: readonly string[]) => () => placesOf(graph, { laptop, phone: laptop }, 'laptop');
  t.doesNotThrow(place(rows));
  t.throws(place(rows.slice(0, 2)), /paused stands there 0 times/);
  t.throws(place([...rows, 'waiting']), /waiting stands there 2 times/);
  t.throws(place(rows.map((row) => row.replace('deciding .', '. deciding'))), /deciding lies in active/);
  t.throws(place([...rows, 'nowhere']), /automation has no state nowhere/);
  t.throws(
    place(['waiting queued starting working interrupting deciding paused finished backingOff removed']),
    /too wide for 520 × 264/,
  );
});
