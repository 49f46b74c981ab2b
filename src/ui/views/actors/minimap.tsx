import type { Chart } from '../../../protocol/index.ts';
import { lookOf } from '../../parts/tone.ts';
import type { Camera, Size } from './camera.ts';
import type { Actor } from './model.ts';

interface MinimapProps {
  readonly chart: Chart;
  readonly actor: Actor;
  readonly camera: Camera;
  readonly size: Size;
  readonly look: (camera: Camera) => void;
}

/** The whole chart, small, with a frame around the part in the pane. A press or a drag moves there. */
export function Minimap({ chart, actor, camera, size, look }: MinimapProps) {
  const active = new Set(actor.states);
  const { tone } = lookOf(actor);
  const onPointer = (event: PointerEvent) => {
    const map = event.currentTarget;
    if (!(map instanceof SVGElement) || (event.buttons & 1) === 0) return;
    map.setPointerCapture(event.pointerId);
    const box = map.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.width;
    const y = ((event.clientY - box.top) / box.height) * chart.height;
    look({ scale: camera.scale, x: size.width / 2 - x * camera.scale, y: size.height / 2 - y * camera.scale });
  };
  return (
    <svg
      class="overview"
      viewBox={`0 0 ${chart.width} ${chart.height}`}
      aria-hidden="true"
      onPointerDown={onPointer}
      onPointerMove={onPointer}
    >
      {chart.nodes
        .filter((node) => node.parent !== null)
        .map((node) => (
          <rect
            key={node.id}
            class={active.has(node.id) ? `active ${tone}` : ''}
            x={node.x}
            y={node.y}
            width={node.width}
            height={node.height}
            rx="10"
          />
        ))}
      <rect
        class="frame-of-view"
        x={-camera.x / camera.scale}
        y={-camera.y / camera.scale}
        width={size.width / camera.scale}
        height={size.height / camera.scale}
      />
    </svg>
  );
}
