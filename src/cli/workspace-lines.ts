/** The table of workspaces at a terminal, for `list`. */
import type { Output } from './output.ts';
import { unmarked } from './paint.ts';
import { columns, inLine } from './render.ts';
import { tableHeading } from './workspace-table.ts';

/** Columns that a narrow terminal drops, in this order. */
const dispensable: readonly string[] = ['PAGE', 'RESTARTS', 'SINCE', 'COST', 'AGENT', 'MODEL', 'LAST TURN'];
const troubleIndent = '  ';

/** Rows as a table that fits the terminal width, with the problem of a row on lines below it. */
export function tableLines(rows: readonly (readonly string[])[], output: Pick<Output, 'colors' | 'width'>): string[] {
  const troubleAt = tableHeading.indexOf('TROUBLE');
  const tableOf = (left: number) => {
    const kept = tableHeading.flatMap((title, index) =>
      index === troubleAt || dispensable.slice(0, left).includes(title) ? [] : [index],
    );
    const cut = (row: readonly string[]) => kept.map((index) => row[index] ?? '');
    return columns(cut(tableHeading), rows.map(cut), output);
  };
  const widthOf = (lines: readonly string[]) => Math.max(...lines.map((line) => unmarked(line).length));
  let left = 0;
  let table = tableOf(left);
  while (widthOf(table) > output.width && left < dispensable.length) {
    left += 1;
    table = tableOf(left);
  }
  // A table that became a list has several lines for each row.
  const perRow = (table.length - 1) / rows.length;
  if (perRow !== 1) return columns(tableHeading, rows, output);
  return [
    ...table.slice(0, 1),
    ...rows.flatMap((row, index) => [table[index + 1] ?? '', ...troubleLines(row[troubleAt] ?? '', output)]),
  ];
}

/** Problem in lines of the terminal width, broken between words. */
function troubleLines(trouble: string, { colors, width }: Pick<Output, 'colors' | 'width'>): string[] {
  if (trouble === '') return [];
  const lines: string[] = [];
  let line = '';
  for (const word of inLine(trouble).split(' ')) {
    if (line !== '' && troubleIndent.length + line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => colors.dim(troubleIndent + each));
}
