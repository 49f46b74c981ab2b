import type { DiffFile, Side } from './diff-types.ts';

export interface NumberedLine {
  readonly text: string;
  readonly line: number;
}

/** The lines of one side of a file, by hunk: the lines open to comments, and the gaps that no comment may span. */
export function sideRuns(file: DiffFile, side: Side): NumberedLine[][] {
  return file.hunks
    .map(({ lines }) =>
      lines.flatMap(({ text, oldLine, newLine }) => {
        const line = side === 'RIGHT' ? newLine : oldLine;
        return line === null ? [] : [{ text: text.endsWith('\r') ? text.slice(0, -1) : text, line }];
      }),
    )
    .filter((run) => run.length > 0);
}

/** The lines of a whole file, counted from 1; a carriage return before the line feed is part of the line end. */
export const numberedLines = (text: string): NumberedLine[] =>
  text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((each, index) => ({ text: each, line: index + 1 }));

/** First and last line of each hunk on a side. */
export function commentableRanges(file: DiffFile, side: Side): (readonly [from: number, to: number])[] {
  return sideRuns(file, side).map((run) => [run[0]?.line ?? 0, run.at(-1)?.line ?? 0]);
}
