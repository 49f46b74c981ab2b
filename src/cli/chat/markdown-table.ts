import stringWidth from 'fast-string-width';
import { wrapWords } from './word-wrap.ts';

/** Beginning of a line that is a row of a table. */
export const tableRow = /^ {0,3}\|/;
const separator = /^[\s|:-]+$/;
const gap = '  ';

/** Cells of a row, without the markers for bold text and code. */
function cellsOf(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) =>
    cell
      .trim()
      .replaceAll('\\|', '|')
      .replace(/\*\*|`/g, ''),
  );
}

/**
 * Formats the rows of a Markdown table for a terminal: as columns if they fit, or else as a list for each row. Rows without a separator
 * line stay unchanged.
 *
 * @param dim styles the headings
 */
export function tableLines(rows: readonly string[], width: number, dim: (text: string) => string): readonly string[] {
  const [head = '', line = '', ...body] = rows;
  if (!separator.test(line) || !line.includes('-')) return rows;
  const headings = cellsOf(head);
  const cells = body.map(cellsOf);
  const widths = headings.map((heading, column) =>
    Math.max(stringWidth(heading), ...cells.map((row) => stringWidth(row[column] ?? ''))),
  );
  const whole = widths.reduce((sum, each) => sum + each, gap.length * (widths.length - 1));
  if (whole > width) return cells.flatMap((row) => listOf(headings, row, width, dim));
  const set = (row: readonly string[]) =>
    widths
      .map((each, column) => (row[column] ?? '') + ' '.repeat(Math.max(0, each - stringWidth(row[column] ?? ''))))
      .join(gap)
      .trimEnd();
  return [dim(set(headings)), ...cells.map(set)];
}

/** A row of a table that is wider than the terminal, as a list. */
function listOf(
  headings: readonly string[],
  row: readonly string[],
  width: number,
  dim: (text: string) => string,
): readonly string[] {
  return headings.flatMap((heading, column) => {
    const title = `${column === 0 ? '•' : ' '} ${heading}:`;
    const [first = '', ...further] = wrapWords(`${title} ${row[column] ?? ''}`, width, '    ');
    return [dim(first.slice(0, title.length)) + first.slice(title.length), ...further];
  });
}
