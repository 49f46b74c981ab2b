import type { ChartNode } from '../protocol/index.ts';
import type { Words } from './words.ts';

/** Room for a drawing on a screen, in CSS pixels. */
export const sizes = {
  wide: { width: 572, height: 460 },
  laptop: { width: 520, height: 264 },
  phone: { width: 388, height: 520 },
} as const;
export type SizeClass = keyof typeof sizes;
export const sizeClasses = Object.keys(sizes) as readonly SizeClass[];

/** Steps of the grid on which a drawing lies, in its pixels. */
export const grid = 4;

/** Smallest text that counts as legible, in CSS pixels. */
export const legible = 11;

/**
 * One drawing of a machine, in steps of the grid: the size, then x, y, width and height of each state of the machine in its order, x and
 * width of the name of each frame but the machine's on its upper border, and the corners of each line of `bundlesOf`.
 */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly number[];
  readonly names: readonly number[];
  readonly lines: readonly (readonly number[])[];
}

type Node = Pick<ChartNode, 'id' | 'parent' | 'meta'>;

/** Ids of the states that are drawn as frames: those that hold others, and the machine. */
export const framesOf = (nodes: readonly Node[]): ReadonlySet<string> =>
  new Set(nodes.filter(({ id }) => id === '' || nodes.some(({ parent }) => parent === id)).map(({ id }) => id));

/** Whether a line is a step of the normal loop: to the next state of the spine, or from its last one back. */
export function isSpine(nodes: readonly Node[], source: string, target: string): boolean {
  const orders = new Map(nodes.flatMap(({ id, meta }) => (meta?.lane === 'spine' ? [[id, meta.order] as const] : [])));
  const [from, to] = [orders.get(source), orders.get(target)];
  if (from === undefined || to === undefined) return false;
  return to === from + 1 || (to < from && from === Math.max(...orders.values()));
}

/** Everything that is drawn of a machine ahead of time. `npm run docs` renews it when `key` is another one. */
export interface Drawings {
  /** Hash of the machine, its words and the drawing code. */
  readonly key: string;
  readonly fingerprint: string;
  readonly words: Words;
  /** Fields of the context that its projection shows under the same name, unchanged. */
  readonly facts: readonly string[];
  readonly pictures: Readonly<Record<SizeClass, Picture>>;
}
