import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { useBrush } from './brush.tsx';
import { isTurn, type Span, type SpanKind, type TraceModel } from './model.ts';
import { placeIn, type Range } from './scale.ts';
import type { Trace } from './store.ts';

const buckets = 240;
const height = 36;
/** Lanes from top to bottom. */
const lanes: readonly SpanKind[] = ['thinking', 'response', 'tool', 'approval'];
const laneHeight = height / lanes.length;

interface Stripe {
  readonly kind: SpanKind;
  readonly from: number;
  readonly to: number;
  readonly isFailed: boolean;
}

/** The whole session in small; drawing over it shows that stretch. The parts out of sight are shaded. */
export function Minimap({ trace }: { readonly trace: Trace }) {
  // Draws the whole session at once, so only after new events, not every second.
  const stripes = useMemo(
    () =>
      computed(() => {
        trace.version.value;
        return stripesOf(trace.model.value, trace.bounds.peek());
      }),
    [trace],
  );
  const bounds = trace.bounds.value;
  const { brush, handlers } = useBrush(bounds, (next) => trace.zoomTo(next));
  const range = trace.range.value;
  const isZoomed = trace.zoom.value !== undefined;
  const from = placeIn(bounds, range.from) * buckets;
  const to = placeIn(bounds, range.to) * buckets;
  return (
    <div class="minimap" {...handlers}>
      <svg viewBox={`0 0 ${buckets} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {stripes.value.map(({ kind, from, to, isFailed }) => (
          <rect
            key={`${kind} ${from}`}
            class={`${kind} ${isFailed ? 'failed' : ''}`}
            x={from}
            y={lanes.indexOf(kind) * laneHeight + 1}
            width={to - from}
            height={laneHeight - 2}
          />
        ))}
        {isZoomed && <rect class="shade" x={0} y={0} width={Math.max(0, from)} height={height} />}
        {isZoomed && <rect class="shade" x={to} y={0} width={Math.max(0, buckets - to)} height={height} />}
      </svg>
      {brush}
    </div>
  );
}

/** Stretches of each kind of span, rounded to the resolution of the minimap. */
export function stripesOf(model: TraceModel, bounds: Range): Stripe[] {
  const filled = new Map(lanes.map((kind) => [kind, new Uint8Array(buckets)]));
  const put = (span: Span) => {
    const lane = filled.get(span.kind);
    if (!lane) return;
    const first = bucketAt(bounds, span.start);
    const last = bucketAt(bounds, span.end ?? bounds.to);
    const value = span.state === 'failed' ? 2 : 1;
    for (let at = first; at <= last; at += 1) lane[at] = Math.max(lane[at] ?? 0, value);
  };
  for (const root of model.roots) {
    if (isTurn(root)) for (const child of root.children) put(child);
    else put(root);
  }
  return [...filled].flatMap(([kind, lane]) => runsOf(kind, lane));
}

const bucketAt = (bounds: Range, at: number): number =>
  Math.min(buckets - 1, Math.max(0, Math.floor(placeIn(bounds, at) * buckets)));

function runsOf(kind: SpanKind, lane: Uint8Array): Stripe[] {
  const runs: Stripe[] = [];
  let from = 0;
  for (let at = 1; at <= lane.length; at += 1) {
    const value = lane[from] ?? 0;
    if (at < lane.length && lane[at] === value) continue;
    if (value > 0) runs.push({ kind, from, to: at, isFailed: value === 2 });
    from = at;
  }
  return runs;
}
