import type { NumberedLine } from './sides.ts';

/** A place where a text was found, in whole lines. */
export interface TextMatch {
  readonly first: NumberedLine;
  readonly last: NumberedLine;
  /** False when the lines differ from the text in white space. */
  readonly isExact: boolean;
  /** Offset of the text in those lines; undefined for whole lines. */
  readonly at?: number;
  readonly lines: readonly NumberedLine[];
}

/** Comparisons of two lines; the strictest first. */
const readings: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  // macOS stores names and texts decomposed; a model writes them composed.
  (line) => line.trim().normalize('NFC'),
];

/**
 * Finds the places where `text` stands as whole lines of a run: exactly, else without regard to white space at the ends of lines,
 * else without indentation, else in Unicode's composed form. The first way with a result in any run decides: a loose match never
 * stands beside an exact one.
 */
export function findLines(runs: readonly (readonly NumberedLine[])[], text: string): TextMatch[] {
  const wanted = text.split('\n');
  for (const read of readings) {
    const found = runs.flatMap((lines) =>
      occurrences(
        lines.map((line) => read(line.text)),
        wanted.map(read),
      ).flatMap((at) => matchOf(lines.slice(at, at + wanted.length), wanted)),
    );
    if (found.length > 0) return found;
  }
  return [];
}

function matchOf(lines: readonly NumberedLine[], wanted: readonly string[]): TextMatch[] {
  const first = lines[0];
  const last = lines.at(-1);
  if (!first || !last) return [];
  const isExact = lines.every(({ text }, index) => text === wanted[index]);
  return [{ first, last, lines, isExact }];
}

/** Every index at which `wanted` begins in `all` (Knuth, Morris and Pratt: linear, even when the lines repeat). */
function occurrences(all: readonly string[], wanted: readonly string[]): number[] {
  const fallback = [0];
  for (let at = 1, length = 0; at < wanted.length; ) {
    if (wanted[at] === wanted[length]) fallback[at++] = ++length;
    else if (length > 0) length = fallback[length - 1] ?? 0;
    else fallback[at++] = 0;
  }
  const found: number[] = [];
  for (let at = 0, length = 0; at < all.length; ) {
    if (all[at] === wanted[length]) {
      at += 1;
      length += 1;
      if (length < wanted.length) continue;
      found.push(at - length);
      length = fallback[length - 1] ?? 0;
    } else if (length > 0) length = fallback[length - 1] ?? 0;
    else at += 1;
  }
  return found;
}

/** Finds every occurrence of `part` that begins within a line; it may span the lines that follow. */
export function findParts(runs: readonly (readonly NumberedLine[])[], part: string): TextMatch[] {
  return runs.flatMap((lines) => partsOf(lines, part));
}

function partsOf(lines: readonly NumberedLine[], part: string): TextMatch[] {
  const whole = lines.map(({ text }) => text).join('\n');
  const found: TextMatch[] = [];
  let index = 0;
  let start = 0;
  for (let at = whole.indexOf(part); at >= 0; at = whole.indexOf(part, at + 1)) {
    // Places come in order, so one walk through the lines is enough.
    for (let length = lines[index]?.text.length ?? 0; at > start + length; length = lines[index]?.text.length ?? 0) {
      start += length + 1;
      index += 1;
    }
    const first = lines[index];
    const last = lines[index + part.split('\n').length - 1];
    if (!first || !last) continue;
    const spanned = lines.slice(index, index + part.split('\n').length);
    found.push({ first, last, lines: spanned, isExact: true, at: at - start });
  }
  return found;
}
