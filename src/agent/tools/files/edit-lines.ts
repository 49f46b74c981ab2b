import type { Span } from './edit-match.ts';

export interface Edit {
  readonly oldText: string;
  readonly newText: string;
  readonly replaceAll: boolean;
}

/** A piece of the old text and its replacement. */
export interface Change extends Span {
  readonly replacement: string;
}

/** Characters that models write in the place of others, one for one: typographic quotes, dashes, odd blanks. */
const lookAlikes: Readonly<Record<string, string>> = {
  '\u2018': "'",
  '\u2019': "'",
  '\u201a': "'",
  '\u201b': "'",
  '\u2032': "'",
  '\u201c': '"',
  '\u201d': '"',
  '\u201e': '"',
  '\u201f': '"',
  '\u2033': '"',
  '\u2010': '-',
  '\u2011': '-',
  '\u2012': '-',
  '\u2013': '-',
  '\u2014': '-',
  '\u2212': '-',
  '\u00a0': ' ',
  '\u202f': ' ',
  '\u3000': ' ',
};

const oddCharacter = /[\u2018-\u201b\u2032\u201c-\u201f\u2033\u2010-\u2014\u2212\u00a0\u2000-\u200a\u202f\u3000]/g;

/** The text with plain quotes, dashes and blanks; as long as before. */
export const plain = (text: string): string => text.replace(oddCharacter, (odd) => lookAlikes[odd] ?? ' ');

interface Line {
  readonly start: number;
  /** Text without its line end. */
  readonly text: string;
}

/** Fewer characters besides blanks are found by chance. */
export const distinctiveChars = 3;

/**
 * Places of whole lines in `text` that are `oldText` but for indentation, each with its text after the edit. A place where
 * the indentation of the new text does not follow is left out.
 * @param same compares lines by their result, indentation and blanks at the end left out
 */
export function linePlaces(
  text: string,
  { oldText, newText }: Pick<Edit, 'oldText' | 'newText'>,
  same: (line: string) => string,
): readonly Change[] {
  const wanted = withoutBlankEnds(oldText.split(/\r?\n/));
  if (wanted.join('').replaceAll(/\s/g, '').length < distinctiveChars) return [];
  const lines = linesOf(text);
  const key = (line: string) => same(line).trim();
  const keys = wanted.map(key);
  const places: Change[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at += 1) {
    if (!keys.every((expected, index) => expected === key(lines[at + index]?.text ?? ''))) continue;
    const found = lines.slice(at, at + wanted.length);
    const replacement = replacementFor(found, wanted, withoutBlankEnds(newText.split(/\r?\n/)), key);
    const [first, last] = [found[0], found.at(-1)];
    if (!first || !last || replacement === undefined) continue;
    const next = lines[at + wanted.length];
    // Lines that are deleted leave no empty one.
    const end = replacement === '' && next ? next.start : last.start + last.text.length;
    places.push({ start: first.start, end, replacement });
  }
  return places;
}

function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  for (let start = 0; ; ) {
    const feed = text.indexOf('\n', start);
    const end = feed < 0 ? text.length : feed;
    const lineEnd = feed > start && text[feed - 1] === '\r' ? feed - 1 : end;
    lines.push({ start, text: text.slice(start, lineEnd) });
    if (feed < 0) return lines;
    start = feed + 1;
  }
}

/** Removes blank lines at both ends; lines that are all blank yield none. */
export function withoutBlankEnds(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.trim() !== '');
  const last = lines.findLastIndex((line) => line.trim() !== '');
  return first < 0 ? [] : lines.slice(first, last + 1);
}

const indentOf = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';

/** New lines in the place of found ones; undefined: their indentation does not follow from the old text. */
function replacementFor(
  found: readonly Line[],
  wanted: readonly string[],
  fresh: readonly string[],
  key: (line: string) => string,
): string | undefined {
  if (fitsAlready(found, wanted, fresh, key)) return fresh.join('\n');
  /** Lines that the new text repeats keep the characters of the file. */
  const repeated = new Map(wanted.map((line, index) => [line.trimEnd(), found[index]?.text ?? line]));
  const indents = indentMap(found, wanted);
  if (!indents) return undefined;
  const lines = fresh.map((line) => {
    const own = repeated.get(line.trimEnd());
    if (own !== undefined || line.trim() === '') return own ?? line;
    const indent = indents(indentOf(line));
    return indent === undefined ? undefined : indent + line.slice(indentOf(line).length);
  });
  return lines.includes(undefined) ? undefined : lines.join('\n');
}

/** Maps an indentation of the old text to that of the file; deeper levels by the unit of each. Undefined: it is not one to one. */
function indentMap(
  found: readonly Line[],
  wanted: readonly string[],
): ((indent: string) => string | undefined) | undefined {
  const forth = new Map<string, string>();
  const back = new Map<string, string>();
  for (const [index, line] of wanted.entries()) {
    if (line.trim() === '') continue;
    const [from, to] = [indentOf(line), indentOf(found[index]?.text ?? '')];
    if ((forth.get(from) ?? to) !== to || (back.get(to) ?? from) !== from) return undefined;
    forth.set(from, to);
    back.set(to, from);
  }
  const unit = unitsOf(forth);
  return (indent) => {
    const known = forth.get(indent);
    if (known !== undefined) return known;
    const nearest = [...forth.keys()].filter((each) => indent.startsWith(each)).sort((a, b) => b.length - a.length)[0];
    if (nearest === undefined || !unit) return undefined;
    const deeper = indent.slice(nearest.length);
    const levels = deeper.length / unit.from.length;
    if (!Number.isInteger(levels) || deeper !== unit.from.repeat(levels)) return undefined;
    return `${forth.get(nearest)}${unit.to.repeat(levels)}`;
  };
}

/** One level of indentation in the old text and in the file: the difference of two levels that both have. */
function unitsOf(forth: ReadonlyMap<string, string>): { readonly from: string; readonly to: string } | undefined {
  const levels = [...forth].sort(([a], [b]) => a.length - b.length);
  for (const [index, [from, to]] of levels.entries()) {
    const next = levels[index + 1];
    if (!next) break;
    const [deeper, deeperTo] = next;
    if (
      deeper.startsWith(from) &&
      deeperTo.startsWith(to) &&
      deeper.length > from.length &&
      deeperTo.length > to.length
    ) {
      return { from: deeper.slice(from.length), to: deeperTo.slice(to.length) };
    }
  }
  // One level only: the same characters go deeper in both, where they agree.
  const [only] = levels;
  if (!only) return undefined;
  const character = (indent: string) => (indent.includes('\t') ? '\t' : indent.length % 4 === 0 ? '    ' : '  ');
  const [from, to] = only;
  if (from === '' || to === '') return from === to ? { from: '  ', to: '  ' } : undefined;
  return character(from) === character(to) ? { from: character(from), to: character(to) } : undefined;
}

/**
 * Whether the new text is indented as the file is, and only the old text is not: its lines that are in the file have the indentation
 * of the file, at least one of them against that of the old text.
 */
function fitsAlready(
  found: readonly Line[],
  wanted: readonly string[],
  fresh: readonly string[],
  key: (line: string) => string,
): boolean {
  const indents = new Map(found.map(({ text }, index) => [key(text), [indentOf(text), indentOf(wanted[index] ?? '')]]));
  const common = fresh
    .filter((line) => line.trim() !== '')
    .flatMap((line) => {
      const known = indents.get(key(line));
      return known ? [{ own: indentOf(line), inFile: known[0], inOld: known[1] }] : [];
    });
  return common.every(({ own, inFile }) => own === inFile) && common.some(({ inFile, inOld }) => inFile !== inOld);
}
