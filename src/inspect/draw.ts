import type { Places } from '../../machines/index.ts';
import { bundlesOf } from './bundles.ts';
import type { MachineGraph } from './graph.ts';
import { type Drawings, framesOf, isSpine, type Picture, type SizeClass } from './picture.ts';
import { placesOf } from './places.ts';
import { routesOf } from './route.ts';

/** Draws a machine for each size class. Throws when its states do not fit into one. */
export function picturesOf(graph: MachineGraph, places: Places | undefined): Drawings['pictures'] {
  const picture = (size: SizeClass) => pictureOf(graph, places, size);
  return { wide: picture('wide'), laptop: picture('laptop'), phone: picture('phone') };
}

function pictureOf(graph: MachineGraph, places: Places | undefined, size: SizeClass): Picture {
  const placement = placesOf(graph, places, size);
  const wires = bundlesOf(graph).map(({ source, target }) => ({
    source,
    target,
    isSpine: isSpine(graph.nodes, source, target),
  }));
  return {
    width: placement.width,
    height: placement.height,
    boxes: graph.nodes.flatMap(({ id }) => {
      const { x, y, width, height } = placement.boxes.get(id) ?? { x: 0, y: 0, width: 0, height: 0 };
      return [x, y, width, height];
    }),
    names: graph.nodes.flatMap(({ id }) => {
      const name = placement.names.get(id);
      return name ? [name.x, name.width] : [];
    }),
    lines: routesOf(placement, framesOf(graph.nodes), wires).map((corners) => corners.flatMap(({ x, y }) => [x, y])),
  };
}
