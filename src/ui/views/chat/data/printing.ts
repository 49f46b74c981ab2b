import { signal } from '@preact/signals';
import { options } from 'preact';

/** Whether the page is being printed. If so, the document contains the whole conversation, not only the visible part. */
export const isPrinted = signal(false);

/** Renders before the call returns, because the browser prints right after the event. */
function set(value: boolean): void {
  options.debounceRendering = (draw) => draw();
  isPrinted.value = value;
  Reflect.deleteProperty(options, 'debounceRendering');
}

addEventListener('beforeprint', () => set(true));
addEventListener('afterprint', () => set(false));
matchMedia('print').addEventListener('change', ({ matches }) => set(matches));
