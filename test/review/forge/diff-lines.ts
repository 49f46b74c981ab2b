import type { ForgeFile } from './model.ts';

interface Range {
  readonly first: number;
  readonly last: number;
}

/** Where GitHub takes comments, by the headers of hunks alone: no parser of ours, so that it can judge ours. */
function ranges({ patch = '' }: ForgeFile, side: string): Range[] {
  return [...patch.matchAll(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/gm)].map(
    ([, oldStart = '0', oldCount = '1', newStart = '0', newCount = '1']) => {
      const [start, count] = side === 'LEFT' ? [oldStart, oldCount] : [newStart, newCount];
      return { first: Number(start), last: Number(start) + Number(count) - 1 };
    },
  );
}

interface Comment {
  readonly path?: unknown;
  readonly line?: unknown;
  readonly side?: unknown;
  readonly start_line?: unknown;
}

/** Whether the lines are in one hunk of the file, on that side. */
export function isInDiff(files: readonly ForgeFile[], { path, line, side = 'RIGHT', start_line }: Comment): boolean {
  const file = files.find(({ filename }) => filename === path);
  if (!file || typeof line !== 'number') return false;
  const from = typeof start_line === 'number' ? start_line : line;
  if (start_line !== undefined && from >= line) return false;
  return ranges(file, String(side)).some(({ first, last }) => first <= from && line <= last);
}
