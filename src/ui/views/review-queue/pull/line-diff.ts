/** One line of a small diff. */
export interface ChangedLine {
  readonly kind: 'kept' | 'removed' | 'added';
  readonly text: string;
  /** Number in the present file; absent for an added line. */
  readonly line: number | undefined;
}

/** Largest comparison, old lines times new lines; a larger one shows all old lines, then all new ones. */
const maxCells = 250_000;

/** Lines of a text; a line end at its end does not add a line. */
const linesOf = (text: string): readonly string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/));

/**
 * Computes the edits that turn `before` into `after`, with as many common lines as possible.
 *
 * @param first number of the first line of `before` in its file
 */
export function lineDiff(before: string, after: string, first: number | undefined): ChangedLine[] {
  const old = linesOf(before);
  const fresh = linesOf(after);
  const number = (index: number) => (first === undefined ? undefined : first + index);
  const removed = (index: number): ChangedLine => ({ kind: 'removed', text: old[index] ?? '', line: number(index) });
  const added = (index: number): ChangedLine => ({ kind: 'added', text: fresh[index] ?? '', line: undefined });
  if (old.length * fresh.length > maxCells) {
    return [...old.map((_, index) => removed(index)), ...fresh.map((_, index) => added(index))];
  }
  const kept = longestCommon(old, fresh);
  const result: ChangedLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      result.push({ kind: 'kept', text: old[i] ?? '', line: number(i) });
      i += 1;
      j += 1;
    } else if (j >= fresh.length || (i < old.length && kept(i + 1, j) >= kept(i, j + 1))) {
      result.push(removed(i));
      i += 1;
    } else {
      result.push(added(j));
      j += 1;
    }
  }
  return result;
}

/** Number of common lines, in order, of both texts from (i, j) on. */
function longestCommon(old: readonly string[], fresh: readonly string[]): (i: number, j: number) => number {
  const width = fresh.length + 1;
  const table = new Uint16Array((old.length + 1) * width);
  const at = (i: number, j: number) => table[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  return at;
}
