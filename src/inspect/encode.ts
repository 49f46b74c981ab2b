import { bundlesOf } from './bundles.ts';
import type { MachineGraph } from './graph.ts';
import type { Layout } from './layout.ts';

const tenths = (value: number): number => Math.round(value * 10) / 10;

/** Every state open: boxes by state, and for each arrow the corner of its words and of its line, in tenths of a pixel. */
export interface Whole {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly number[];
  readonly arrows: readonly (readonly number[])[];
}

/** A layout of the whole machine as numbers: boxes in the order of its states, arrows in that of `bundlesOf`. */
export function encodeWhole(graph: MachineGraph, layout: Layout): Whole {
  const missing = (what: string) => new Error(`${what} of ${graph.name} was not laid out.`);
  return {
    width: layout.width,
    height: layout.height,
    boxes: graph.nodes.flatMap(({ id }) => {
      const box = layout.boxes.get(id);
      if (!box) throw missing(`State ${id}`);
      return [box.x, box.y, box.width, box.height].map(tenths);
    }),
    arrows: bundlesOf(graph).map(({ id }) => {
      const route = layout.routes.get(id);
      if (!route) throw missing(`Transition ${id}`);
      return [route.label, ...route.points].flatMap(({ x, y }) => [tenths(x), tenths(y)]);
    }),
  };
}

/** The layout that `encodeWhole` wrote. Numbers that are missing are 0: the key of the drawings must be compared before. */
export function decodeWhole(graph: MachineGraph, { width, height, boxes, arrows }: Whole): Layout {
  const at = (numbers: readonly number[], index: number): number => numbers[index] ?? 0;
  return {
    width,
    height,
    boxes: new Map(
      graph.nodes.map(({ id }, node) => [
        id,
        {
          x: at(boxes, 4 * node),
          y: at(boxes, 4 * node + 1),
          width: at(boxes, 4 * node + 2),
          height: at(boxes, 4 * node + 3),
        },
      ]),
    ),
    routes: new Map(
      bundlesOf(graph).map(({ id }, bundle) => {
        const numbers = arrows[bundle] ?? [];
        const points = Array.from({ length: Math.max(0, numbers.length / 2 - 1) }, (_, index) => ({
          x: at(numbers, 2 * index + 2),
          y: at(numbers, 2 * index + 3),
        }));
        return [id, { label: { x: at(numbers, 0), y: at(numbers, 1) }, points }];
      }),
    ),
  };
}
