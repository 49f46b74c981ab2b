/** Visible part of a drawing: its coordinates are scaled by `scale` and moved by (x, y) pixels. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

const largest = 2.5;
const smallest = 0.12;
/** A small drawing is not enlarged further when it is fitted. */
const largestFitted = 1.5;

/** The camera that shows a drawing whole, in the middle. A drawing has a margin of its own. */
export function fitChart(drawing: Size, pane: Size): Camera {
  const scale = Math.max(smallest, Math.min(largestFitted, pane.width / drawing.width, pane.height / drawing.height));
  return { scale, x: (pane.width - drawing.width * scale) / 2, y: (pane.height - drawing.height * scale) / 2 };
}

/** Zooms by a factor; the point (x, y) of the pane stays where it is. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.max(smallest, Math.min(largest, camera.scale * factor));
  const change = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * change, y: y - (y - camera.y) * change };
}
