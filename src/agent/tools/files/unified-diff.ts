import { cutLine } from '../text.ts';
import type { Change } from './edit-lines.ts';
import { limits } from './settings.ts';

/** Lines shown around a change. */
const context = 3;

/** Lines that one change, or several on the same lines, made other ones of; `From` and `To` are indexes. */
interface Segment {
  readonly oldFrom: number;
  readonly oldTo: number;
  readonly newFrom: number;
  readonly newTo: number;
}

/** Lines of a text by position. */
class Lines {
  readonly all: readonly string[];
  readonly #starts: number[] = [0];

  constructor(text: string) {
    this.all = text.split('\n');
    for (const line of this.all) this.#starts.push((this.#starts.at(-1) ?? 0) + line.length + 1);
  }

  /** Index of the line that holds position `at`. */
  indexAt(at: number): number {
    let low = 0;
    let high = this.all.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/**
 * Writes changes of `before` as a unified diff of at most `limits.diffLines` lines; states how many it leaves out. CR at
 * the ends of lines is not shown.
 *
 * @param changes in order, not overlapping
 */
export function unifiedDiff(shownPath: string, before: string, after: string, changes: readonly Change[]): string {
  const old = new Lines(before);
  const now = new Lines(after);
  const lines = hunksOf(segmentsOf(old, now, changes)).flatMap((hunk) => hunkLines(old.all, now.all, hunk));
  const shown = lines.slice(0, limits.diffLines).map((line) => cutLine(line.replace(/\r$/, ''), limits.diffLineChars));
  const rest = lines.length - shown.length;
  const notice = rest > 0 ? [`[${rest} more lines of the diff are not shown.]`] : [];
  return [`--- ${shownPath}`, `+++ ${shownPath}`, ...shown, ...notice].join('\n');
}

function segmentsOf(old: Lines, now: Lines, changes: readonly Change[]): Segment[] {
  const segments: Segment[] = [];
  let shift = 0;
  for (const { start, end, replacement } of changes) {
    const oldFrom = old.indexAt(start);
    const oldTo = old.indexAt(end) + 1;
    const newFrom = now.indexAt(start + shift);
    const newTo = now.indexAt(start + shift + replacement.length) + 1;
    shift += replacement.length - (end - start);
    const last = segments.at(-1);
    if (last && oldFrom < last.oldTo) segments[segments.length - 1] = { ...last, oldTo, newTo };
    else segments.push({ oldFrom, oldTo, newFrom, newTo });
  }
  return segments.map((segment) => withoutEqualEnds(old.all, now.all, segment));
}

/** Returns only the differing lines: a change may begin or end with lines of both texts. */
function withoutEqualEnds(old: readonly string[], now: readonly string[], segment: Segment): Segment {
  let { oldFrom, oldTo, newFrom, newTo } = segment;
  while (oldFrom < oldTo && newFrom < newTo && old[oldFrom] === now[newFrom]) {
    oldFrom += 1;
    newFrom += 1;
  }
  while (oldTo > oldFrom && newTo > newFrom && old[oldTo - 1] === now[newTo - 1]) {
    oldTo -= 1;
    newTo -= 1;
  }
  return { oldFrom, oldTo, newFrom, newTo };
}

/** Segments whose surroundings touch are shown together. */
function hunksOf(segments: readonly Segment[]): Segment[][] {
  const hunks: Segment[][] = [];
  for (const segment of segments) {
    const last = hunks.at(-1)?.at(-1);
    if (last && segment.oldFrom - last.oldTo <= 2 * context) hunks.at(-1)?.push(segment);
    else hunks.push([segment]);
  }
  return hunks;
}

function hunkLines(old: readonly string[], now: readonly string[], hunk: readonly Segment[]): string[] {
  const [first, last] = [hunk[0], hunk.at(-1)];
  if (!first || !last) return [];
  const lead = Math.min(context, first.oldFrom);
  // The empty text after the last line feed is not a line.
  const oldLines = old.at(-1) === '' ? old.length - 1 : old.length;
  const trail = Math.max(0, Math.min(context, oldLines - last.oldTo));
  const range = (from: number, to: number) => `${to === from ? from : from + 1},${to - from}`;
  const lines = [
    `@@ -${range(first.oldFrom - lead, last.oldTo + trail)} +${range(first.newFrom - lead, last.newTo + trail)} @@`,
  ];
  const add = (sign: string, some: readonly string[]) => {
    for (const line of some) lines.push(sign + line);
  };
  let at = first.oldFrom - lead;
  for (const { oldFrom, oldTo, newFrom, newTo } of hunk) {
    add(' ', old.slice(at, oldFrom));
    add('-', old.slice(oldFrom, oldTo));
    add('+', now.slice(newFrom, newTo));
    at = oldTo;
  }
  add(' ', old.slice(at, last.oldTo + trail));
  return lines;
}
