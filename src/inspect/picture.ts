import type { Level } from './detail.ts';
import type { Words } from './words.ts';

/** Room for a drawing on a screen, in CSS pixels: the chart of a desktop, and of a phone. */
export const panes = {
  desktop: { width: 560, height: 490 },
  phone: { width: 360, height: 390 },
} as const;
export type Pane = keyof typeof panes;

/** Smallest text that counts as legible, in CSS pixels. */
export const legible = 11;

/**
 * One drawing around a focus: its level and size, then for each state of `detailOf` in its order x, y, width and height, then
 * for each arrow the corner of its words and the corners of its line. Whole pixels.
 */
export interface Picture {
  readonly level: Level;
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly number[];
  readonly arrows: readonly (readonly number[])[];
}

/** Everything that is drawn of a machine ahead of time. `npm run docs` renews it when `key` is another one. */
export interface Drawings {
  /** Hash of the machine, its words and the drawing code. */
  readonly key: string;
  readonly fingerprint: string;
  readonly words: Words;
  /** Fields of the context that its projection shows under the same name, unchanged. */
  readonly facts: readonly string[];
  /** Every state open: boxes by state, and for each arrow the corner of its words and of its line, in tenths of a pixel. */
  readonly whole: Omit<Picture, 'level'>;
  /** By simple state. */
  readonly pictures: Readonly<Record<string, Readonly<Record<Pane, Picture>>>>;
}
