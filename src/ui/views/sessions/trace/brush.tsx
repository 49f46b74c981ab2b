import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Range } from './scale.ts';

/** A press with less movement is a click. */
const clickPx = 4;

/** Drawing over an element selects a part of its time range; a double click selects the whole range again. */
export function useBrush(
  range: Range,
  choose: (range: Range | undefined) => void,
): { readonly brush: ComponentChildren; readonly handlers: Record<string, (event: never) => void> } {
  const drawn = useSignal<{ readonly from: number; readonly to: number } | undefined>(undefined);
  const placeOf = (event: PointerEvent): number => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)));
  };
  const handlers = {
    onPointerDown(event: PointerEvent) {
      if (event.button !== 0) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      drawn.value = { from: placeOf(event), to: placeOf(event) };
    },
    onPointerMove(event: PointerEvent) {
      if (drawn.value) drawn.value = { from: drawn.value.from, to: placeOf(event) };
    },
    onPointerUp(event: PointerEvent) {
      const done = drawn.value;
      drawn.value = undefined;
      if (!done) return;
      const width = (event.currentTarget as HTMLElement).clientWidth;
      const [a, b] = [Math.min(done.from, done.to), Math.max(done.from, done.to)];
      if ((b - a) * width < clickPx) return;
      const length = range.to - range.from;
      choose({ from: range.from + a * length, to: range.from + b * length });
    },
    onPointerCancel() {
      drawn.value = undefined;
    },
    onDblClick() {
      choose(undefined);
    },
  };
  const at = drawn.value;
  const brush = at && (
    <i
      class="brush"
      aria-hidden="true"
      style={{ left: `${Math.min(at.from, at.to) * 100}%`, width: `${Math.abs(at.to - at.from) * 100}%` }}
    />
  );
  return { brush, handlers };
}
