import { isUtf8 } from 'node:buffer';
import { control } from './hidden-text.ts';
import type { LineRange } from './moved-lines.ts';

/** Lines that a suggestion replaces, and the quoted text in them. */
export interface QuotedLines {
  readonly lines: readonly string[];
  readonly oldText: string;
  /** Offset of a quoted part in the lines; absent for whole lines. */
  readonly at?: number;
}

/**
 * Makes the lines that take the place of the quoted ones, so that only the difference between `oldText` and `newText` changes.
 *
 * @returns null when the lines differ from the quoted text in more than a common indentation where `newText` changes them
 */
export function replacementFor({ lines, oldText, at }: QuotedLines, newText: string): string | null {
  const there = lines.join('\n');
  if (at !== undefined) return there.slice(0, at) + newText + there.slice(at + oldText.length);
  return there === oldText ? newText : spliced(lines, oldText.split('\n'), newText.split('\n'));
}

/**
 * Replaces lines that a model quoted loosely. Lines that the new text repeats stay unchanged. A model that left the
 * indentation out of the quoted text left it out of the new one, too, unless every new line has it: the same white space is put before
 * every new line.
 */
function spliced(lines: readonly string[], wanted: readonly string[], fresh: readonly string[]): string | null {
  const indent = missingIndent(lines, wanted);
  const common = commonLines(wanted, fresh);
  if (indent === null || common === null) return null;
  const full = indent + indentOf(wanted.find((line) => line.trim() !== '') ?? '');
  const isInFull = indent !== '' && fresh.every((line) => line.trim() === '' || line.startsWith(full));
  const replaced: string[] = [];
  let [from, to] = [0, 0];
  for (const [kept, repeated] of [...common, [wanted.length, fresh.length] as const]) {
    const isQuoted = wanted.slice(from, kept).every((line, index) => lines[from + index] === indented(line, indent));
    if (!isQuoted) return null;
    const added = fresh.slice(to, repeated);
    replaced.push(...(isInFull ? added : added.map((line) => indented(line, indent))));
    replaced.push(...lines.slice(kept, kept + 1));
    [from, to] = [kept + 1, repeated + 1];
  }
  return replaced.join('\n');
}

const indented = (line: string, indent: string): string => (line.trim() === '' ? line : indent + line);
const indentOf = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? '';

/** White space that every quoted line lacks at its beginning; null when the lines lack different white space. */
function missingIndent(lines: readonly string[], wanted: readonly string[]): string | null {
  const missing = new Set<string | null>();
  for (const [index, line] of wanted.entries()) {
    if (line.trim() === '') continue;
    const [there, given] = [indentOf(lines[index] ?? ''), indentOf(line)];
    missing.add(there.endsWith(given) ? there.slice(0, there.length - given.length) : null);
  }
  const [only = ''] = missing;
  return missing.size > 1 ? null : only;
}

/** Compared pairs of lines at most. */
const comparedPairs = 250_000;

/** Indexes of a longest common subsequence, in both texts; null for texts that are too long to compare. */
function commonLines(left: readonly string[], right: readonly string[]): (readonly [number, number])[] | null {
  if (left.length * right.length > comparedPairs) return null;
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  const lengthAt = (row: number, column: number) => lengths[row * width + column] ?? 0;
  for (let row = left.length - 1; row >= 0; row -= 1)
    for (let column = right.length - 1; column >= 0; column -= 1)
      lengths[row * width + column] =
        left[row] === right[column]
          ? lengthAt(row + 1, column + 1) + 1
          : Math.max(lengthAt(row + 1, column), lengthAt(row, column + 1));
  const pairs: (readonly [number, number])[] = [];
  for (let row = 0, column = 0; row < left.length && column < right.length; ) {
    if (left[row] === right[column]) pairs.push([row++, column++]);
    else if (lengthAt(row + 1, column) >= lengthAt(row, column + 1)) row += 1;
    else column += 1;
  }
  return pairs;
}

/** Reasons against a suggestion: applied on the source, it might change bytes that it does not name. */
export const suggestionObstacles = {
  notUtf8: 'the file is not UTF-8',
  byteOrderMark: 'the file begins with a byte order mark',
  carriageReturns: 'the file has line ends other than LF',
  noLineEnd: 'the file ends without a line end',
  hiddenCharacters: 'the lines have characters that a comment does not preserve',
  unread: 'the file could not be compared with the diff',
  unclear: 'the quoted text differs from the lines of the file',
} as const;
export type SuggestionObstacle = keyof typeof suggestionObstacles;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Returns the reason against every suggestion for a file, or null. @param bytes null for a file that could not be read */
export function obstacleOfFile(bytes: Uint8Array | null): SuggestionObstacle | null {
  if (bytes === null) return 'unread';
  if (!isUtf8(bytes)) return 'notUtf8';
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'byteOrderMark';
  return bytes.includes(carriageReturn) ? 'carriageReturns' : null;
}

/** Returns the reason against a suggestion for lines of a file without an obstacle of its own, or null. */
export function obstacleOfLines(
  bytes: Uint8Array,
  { first, last }: LineRange,
  { lines }: QuotedLines,
  replacement: string,
): SuggestionObstacle | null {
  const text = Buffer.from(bytes).toString('utf8').split('\n');
  if (text.slice(first - 1, last).join('\n') !== lines.join('\n')) return 'unread';
  if (last === text.length && bytes.at(-1) !== lineFeed) return 'noLineEnd';
  return replacement.search(control) >= 0 || !replacement.isWellFormed() ? 'hiddenCharacters' : null;
}
