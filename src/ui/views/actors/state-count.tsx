import { duration } from '../../parts/format.ts';
import type { Statistics } from './statistics.ts';

interface CountProps {
  readonly id: string;
  readonly box: { readonly x: number; readonly y: number; readonly width: number };
  readonly statistics: Statistics;
}

/** Visits of a state and its active time, above its box. */
export function Count({ id, box, statistics }: CountProps) {
  const counted = statistics[id];
  if (!counted || counted.visits === 0) return null;
  return (
    <text class="count" data-count={id} x={box.x + box.width - 4} y={box.y - 3}>
      {`${counted.visits}× ${duration(counted.ms)}`}
    </text>
  );
}
