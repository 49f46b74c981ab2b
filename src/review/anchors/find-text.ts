import type { NumberedLine } from './sides.ts';

/** A place where a text was found, in whole lines. */
export interface TextMatch {
  readonly first: NumberedLine;
  readonly last: NumberedLine;
  /** False when the lines differ from the text in white space. */
  readonly isExact: boolean;
  /**
   * Makes the text that takes the place of those lines from what takes the place of the text. Null when the indentation
   * of the new lines is ambiguous.
   */
  readonly replace: (newText: string) => string | null;
}

/** Comparisons of two lines; the strictest first. */
const readings: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
];

/**
 * Where `text` stands as whole lines of a run: exactly, else without regard to white space at the ends of lines, else without
 * indentation. The first way that finds anything, in whichever run, is the way: a loose match never stands beside an exact one.
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
  return [{ first, last, isExact, replace: (newText) => indentedAs(lines, wanted, newText) }];
}

/** Every index at which `wanted` begins in `all` (Knuth, Morris and Pratt: linear, however much the lines repeat). */
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

/**
 * A model that left the indentation out of what it copied left it out of what it wrote, too: the same white space is put before
 * every line. When the lines lack different amounts, or have another kind, the intention is ambiguous.
 */
function indentedAs(lines: readonly NumberedLine[], wanted: readonly string[], newText: string): string | null {
  const pairs = lines.flatMap(({ text }, index) => {
    const given = wanted[index] ?? '';
    return given.trim() === '' ? [] : [{ there: indentOf(text), given: indentOf(given) }];
  });
  const [first] = pairs;
  if (!first || pairs.every(({ there, given }) => there === given)) return newText;
  const missing = first.there.slice(0, Math.max(0, first.there.length - first.given.length));
  if (!pairs.every(({ there, given }) => there === missing + given)) return null;
  const fresh = newText.split('\n');
  // Written out in full after all.
  if (fresh.every((line) => line.trim() === '' || line.startsWith(first.there))) return newText;
  return fresh.map((line) => (line.trim() === '' ? line : missing + line)).join('\n');
}

const indentOf = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';

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
    // Places come in order, so the lines are walked through once.
    for (let length = lines[index]?.text.length ?? 0; at > start + length; length = lines[index]?.text.length ?? 0) {
      start += length + 1;
      index += 1;
    }
    const first = lines[index];
    const last = lines[index + part.split('\n').length - 1];
    if (!first || !last) continue;
    const before = whole.slice(start, at);
    const lineEnd = whole.indexOf('\n', at + part.length);
    const after = whole.slice(at + part.length, lineEnd === -1 ? undefined : lineEnd);
    found.push({ first, last, isExact: true, replace: (newText) => before + newText + after });
  }
  return found;
}
