/** A stretch of time, milliseconds. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

const shortest = 1;
export const lengthOfRange = ({ from, to }: Range): number => Math.max(shortest, to - from);

/** Position of a moment in a range: 0 at its beginning, 1 at its end. */
export const placeIn = (range: Range, at: number): number => (at - range.from) / lengthOfRange(range);

/** `range` moved and shortened so that it lies within `bounds`. */
export function within(bounds: Range, range: Range): Range {
  const length = Math.min(lengthOfRange(range), lengthOfRange(bounds));
  const from = Math.min(Math.max(range.from, bounds.from), bounds.from + lengthOfRange(bounds) - length);
  return { from, to: from + length };
}

/** @param factor below 1: nearer. @param at moment that keeps its place; default the middle */
export function zoomed(bounds: Range, range: Range, factor: number, at = (range.from + range.to) / 2): Range {
  const length = Math.max(shortest, lengthOfRange(range) * factor);
  const from = at - placeIn(range, at) * length;
  return within(bounds, { from, to: from + length });
}

/** @param share part of the visible range; below zero: back in time */
export function moved(bounds: Range, range: Range, share: number): Range {
  const by = lengthOfRange(range) * share;
  return within(bounds, { from: range.from + by, to: range.to + by });
}

/** A range with a margin on both sides. */
export function around(bounds: Range, { from, to }: Range): Range {
  const room = Math.max((to - from) * 0.1, shortest);
  return within(bounds, { from: from - room, to: to + room });
}

/** `zoom=` of an address: milliseconds since the session began. */
export function spellZoom(range: Range | undefined, start: number): string | undefined {
  return range && `${Math.round(range.from - start)}-${Math.round(range.to - start)}`;
}

export function parseZoom(text: string | undefined, start: number): Range | undefined {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text ?? '') ?? [];
  if (from === undefined || Number(to) <= Number(from)) return undefined;
  return { from: start + Number(from), to: start + Number(to) };
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const steps: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 4, 6, 12, 24, 48, 168].map((count) => count * hour),
];

/** Round moments since `start` within a range, at most `most` of them. */
export function ticks(range: Range, start: number, most: number): number[] {
  const enough = steps.find((step) => lengthOfRange(range) / step <= most);
  const step = enough ?? Math.ceil(lengthOfRange(range) / most);
  const first = Math.ceil((range.from - start) / step) * step + start;
  const found: number[] = [];
  for (let at = first; at <= range.to; at += step) found.push(at);
  return found;
}
