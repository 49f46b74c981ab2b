import { signal } from '@preact/signals';
import { options } from 'preact';

/** Whether the page is being printed: then all of a conversation is in the document, not only the part in sight. */
export const isPrinted = signal(false);

/** Draws before the call returns, because the browser prints right after the event. */
function set(value: boolean): void {
  options.debounceRendering = (draw) => draw();
  isPrinted.value = value;
  Reflect.deleteProperty(options, 'debounceRendering');
}

addEventListener('beforeprint', () => set(true));
addEventListener('afterprint', () => set(false));
matchMedia('print').addEventListener('change', ({ matches }) => set(matches));
