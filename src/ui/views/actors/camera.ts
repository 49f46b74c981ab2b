import type { Chart } from '../../../protocol/index.ts';

/** Visible part of a chart: chart coordinates are scaled by `scale` and moved by (x, y) pixels. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

interface Box extends Size {
  readonly x: number;
  readonly y: number;
}

const margin = 8;
const largest = 2.5;
const smallest = 0.12;

/** The camera that shows a box whole, in the middle, not larger than `limit`. */
export function fitBox(box: Box, pane: Size, limit = 1): Camera {
  const room = { width: Math.max(80, pane.width - 2 * margin), height: Math.max(80, pane.height - 2 * margin) };
  const scale = Math.max(smallest, Math.min(limit, room.width / box.width, room.height / box.height));
  return {
    scale,
    x: pane.width / 2 - (box.x + box.width / 2) * scale,
    y: pane.height / 2 - (box.y + box.height / 2) * scale,
  };
}

export const fitChart = (chart: Size, pane: Size): Camera => fitBox({ x: 0, y: 0, ...size(chart) }, pane, 1.25);

const size = ({ width, height }: Size): Size => ({ width, height });

/** Height of the overview, which covers the foot of a pane that is high enough: followed states must not be below it. */
const foot = 140;

/** Camera that shows the active states legibly, with their surroundings. */
export function followStates(chart: Chart, states: readonly string[], whole: Size): Camera {
  const pane = { width: whole.width, height: whole.height > 3 * foot ? whole.height - foot : whole.height };
  const leaves = chart.nodes.filter(
    (node) => states.includes(node.id) && !states.some((other) => other.startsWith(`${node.id}.`)),
  );
  const [first] = leaves;
  const fitted = fitChart(chart, whole);
  if (!first) return fitted;
  const left = Math.min(...leaves.map((node) => node.x));
  const top = Math.min(...leaves.map((node) => node.y));
  const width = Math.max(...leaves.map((node) => node.x + node.width)) - left;
  const height = Math.max(...leaves.map((node) => node.y + node.height)) - top;
  const scale = Math.max(fitted.scale, 0.8);
  const camera = fitBox({ x: left, y: top, width, height }, pane, scale);
  return keepInside(camera, chart, pane);
}

/** Moves a camera so that no side shows more emptiness than needed. */
function keepInside(camera: Camera, chart: Chart, pane: Size): Camera {
  const clamp = (offset: number, room: number, extent: number, start: number): number => {
    if (start + extent + margin <= room) return (room + start - margin - extent) / 2;
    return Math.min(start, Math.max(room - extent - margin, offset));
  };
  const { scale } = camera;
  return {
    scale,
    x: clamp(camera.x, pane.width, chart.width * scale, margin),
    y: clamp(camera.y, pane.height, chart.height * scale, margin),
  };
}

/** Zooms by a factor; the point (x, y) of the pane stays where it is. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.max(smallest, Math.min(largest, camera.scale * factor));
  const change = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * change, y: y - (y - camera.y) * change };
}
