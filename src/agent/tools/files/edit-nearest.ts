/** Helps a model that copied wrongly: shows the real text. This text is never edited. */

export interface NearestText {
  /** Number of the first line shown, from 1. */
  readonly line: number;
  readonly lines: readonly string[];
  /** The shown beginning is the wanted one but for spaces. */
  readonly differsInSpaces: boolean;
}

const shownLines = 3;
/** Limits of the search for a hint, in the wanted text, the file and each line: more is not worth the time. */
const most = { wantedLines: 50, fileLines: 50_000, similarLines: 10_000, lineChars: 300, places: 50 };
/** Similarity of two lines, 0 to 1, below which they have nothing to do with each other. */
const minimum = 0.4;

/** The place in `text` that looks most like `wanted`; undefined when none does. */
export function nearestText(text: string, wanted: string): NearestText | undefined {
  const lines = text.split(/\r?\n/, most.fileLines);
  const targets = wanted.split(/\r?\n/, most.wantedLines);
  const first = targets.findIndex((line) => line.trim() !== '');
  if (first === -1) return undefined;
  const at = byEqualLines(lines, targets) ?? bySimilarLine(lines, targets);
  if (at === undefined) return undefined;
  const from = Math.min(Math.max(at, 0), lines.length - 1);
  return {
    line: from + 1,
    lines: lines.slice(from, from + shownLines),
    differsInSpaces: targets.every(
      (line, index) => line.trim() === '' || tight(line) === tight(lines[at + index] ?? ''),
    ),
  };
}

const tight = (line: string): string => line.replaceAll(/\s+/g, '');

/** Finds the place with the most lines of the wanted text, spaces ignored; returns the index that its first line would have. */
function byEqualLines(lines: readonly string[], targets: readonly string[]): number | undefined {
  const places = new Map<string, number[]>();
  for (const target of targets) if (tight(target).length > 1) places.set(tight(target), []);
  for (const [index, line] of lines.entries()) {
    const found = places.get(tight(line.slice(0, 2_000)));
    if (found && found.length < most.places) found.push(index);
  }
  const votes = new Map<number, number>();
  for (const [index, target] of targets.entries()) {
    for (const place of places.get(tight(target)) ?? []) {
      votes.set(place - index, (votes.get(place - index) ?? 0) + 1);
    }
  }
  return best(votes);
}

/** Finds the place with a line that is similar to the longest wanted line. */
function bySimilarLine(lines: readonly string[], targets: readonly string[]): number | undefined {
  const longest = targets.reduce((a, b) => (b.trim().length > a.trim().length ? b : a));
  const wanted = pairsOf(longest);
  const scores = new Map<number, number>();
  for (const [index, line] of lines.slice(0, most.similarLines).entries()) {
    const score = similarity(wanted, pairsOf(line));
    if (score >= minimum) scores.set(index - targets.indexOf(longest), score);
  }
  return best(scores);
}

function best(scores: ReadonlyMap<number, number>): number | undefined {
  let found: number | undefined;
  for (const [at, score] of scores) {
    if (found === undefined || score > (scores.get(found) ?? 0)) found = at;
  }
  return found;
}

/** Neighbouring characters of a line, without its spaces at both ends. */
function pairsOf(line: string): ReadonlySet<string> {
  const text = line.trim().slice(0, most.lineChars);
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)));
}

/** Sørensen–Dice coefficient. */
function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0) return 0;
  let common = 0;
  for (const pair of a) if (b.has(pair)) common += 1;
  return (2 * common) / (a.size + b.size);
}
