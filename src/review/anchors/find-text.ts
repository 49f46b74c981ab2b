import type { NumberedLine } from './sides.ts';

/** A place where a text was found, in whole lines. */
export interface TextMatch {
  readonly first: NumberedLine;
  readonly last: NumberedLine;
  /** Makes the text that takes the place of those lines from what takes the place of the text. */
  readonly replace: (newText: string) => string;
}

type Alike = (line: string, wanted: string) => boolean;
const exactly: Alike = (line, wanted) => line === wanted;
const withoutEnds: Alike = (line, wanted) => line.trimEnd() === wanted.trimEnd();
const withoutIndent: Alike = (line, wanted) => line.trim() === wanted.trim();

/**
 * Where `text` stands as whole lines: exactly, else without regard to what ends lines in white space, else without
 * indentation. The first way that finds anything is the way.
 */
export function findLines(lines: readonly NumberedLine[], text: string): TextMatch[] {
  const wanted = text.split('\n');
  for (const alike of [exactly, withoutEnds, withoutIndent]) {
    const found = wholeLines(lines, wanted, alike);
    if (found.length > 0) return found;
  }
  return [];
}

function wholeLines(lines: readonly NumberedLine[], wanted: readonly string[], alike: Alike): TextMatch[] {
  const found: TextMatch[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at += 1) {
    if (!wanted.every((each, index) => alike(lines[at + index]?.text ?? '', each))) continue;
    const first = lines[at];
    const last = lines[at + wanted.length - 1];
    if (first && last)
      found.push({ first, last, replace: (newText) => indentedAs(first.text, wanted[0] ?? '', newText) });
  }
  return found;
}

/** A model that left the indentation out of what it copied left it out of what it wrote, too. */
function indentedAs(line: string, wanted: string, newText: string): string {
  const there = indentOf(line);
  const given = indentOf(wanted);
  if (there === given || !there.endsWith(given)) return newText;
  const missing = there.slice(0, there.length - given.length);
  return newText
    .split('\n')
    .map((each) => (each.trim() === '' ? each : missing + each))
    .join('\n');
}

const indentOf = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';

/** Where `part` stands within a line, every occurrence by itself. */
export function findParts(lines: readonly NumberedLine[], part: string): TextMatch[] {
  if (part.includes('\n')) return [];
  return lines.flatMap((line) => {
    const places: number[] = [];
    for (let at = line.text.indexOf(part); at >= 0; at = line.text.indexOf(part, at + part.length)) places.push(at);
    return places.map((at) => ({
      first: line,
      last: line,
      replace: (newText: string) => line.text.slice(0, at) + newText + line.text.slice(at + part.length),
    }));
  });
}
