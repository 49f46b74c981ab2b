import type { DiffFile, DiffHunk, DiffLine } from './diff-types.ts';

/** First and last line of a range, counted from 1. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Finds the present lines of a range of an earlier version of a file. Lines that were changed are found at the lines that replaced them.
 *
 * @param file difference from the earlier version to the present one
 * @returns null when all lines of the range were removed
 */
export function movedLines({ hunks }: DiffFile, { first, last }: LineRange): LineRange | null {
  const found: number[] = [];
  for (let line = first; line <= last; line += 1) {
    const hunk = hunks.findLast(({ oldStart }) => oldStart <= line);
    found.push(...(hunk ? presentLines(hunk, line) : [line]));
  }
  return found.length === 0 ? null : { first: Math.min(...found), last: Math.max(...found) };
}

function presentLines({ oldStart, newStart, lines }: DiffHunk, line: number): number[] {
  const at = lines.findIndex(({ oldLine }) => oldLine === line);
  if (at >= 0) return lines[at]?.kind === 'context' ? [lines[at].newLine ?? 0] : replacements(lines, at);
  const oldEnd = oldStart + lines.filter(({ oldLine }) => oldLine !== null).length;
  const newEnd = newStart + lines.filter(({ newLine }) => newLine !== null).length;
  return [line - oldEnd + newEnd];
}

/** Lines that replaced a removed one: those at its share of the block of changed lines, and one on each side. */
function replacements(lines: readonly DiffLine[], at: number): number[] {
  const from = lines.findLastIndex(({ kind }, index) => index < at && kind === 'context') + 1;
  const end = lines.findIndex(({ kind }, index) => index > at && kind === 'context');
  const block = lines.slice(from, end === -1 ? undefined : end);
  const removed = block.filter(({ kind }) => kind === 'removed');
  const added = block.flatMap(({ kind, newLine }) => (kind === 'added' && newLine !== null ? [newLine] : []));
  const share = Math.floor(
    (block.slice(0, at - from).filter(({ kind }) => kind === 'removed').length * added.length) / removed.length,
  );
  return added.slice(Math.max(0, share - 1), share + 2);
}
