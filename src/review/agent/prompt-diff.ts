import { commentableRanges, type DiffFile } from '../anchors/index.ts';
import { fenced, plainPath } from './fence.ts';

/** Part of a change in the prompt, and files that the model has to read. */
export interface ShownDiff {
  /** In the order of the change. */
  readonly shown: readonly { readonly file: DiffFile; readonly text: string }[];
  readonly leftOut: readonly DiffFile[];
}

const marks = { context: ' ', added: '+', removed: '-' } as const;

/** Fits as many files as possible into `maxBytes`, the small ones first: one huge file must not crowd out all others. */
export function fitDiff(files: readonly DiffFile[], maxBytes: number): ShownDiff {
  let left = maxBytes;
  const texts = new Map<DiffFile, string>();
  for (const file of [...files].sort((a, b) => lengthOf(a) - lengthOf(b))) {
    // A file that cannot fit is not rendered.
    if (lengthOf(file) > left) break;
    const text = fileText(file);
    left -= Buffer.byteLength(text);
    if (left < 0) break;
    texts.set(file, text);
  }
  return {
    shown: files.flatMap((file) => {
      const text = texts.get(file);
      return text === undefined ? [] : [{ file, text }];
    }),
    leftOut: files.filter((file) => !texts.has(file)),
  };
}

/** Approximate length of a file's text, never more than the real one. */
const lengthOf = ({ hunks }: DiffFile): number =>
  hunks.reduce((sum, { lines }) => sum + lines.reduce((all, { text }) => all + text.length, 0), 0);

/** One file with its hunks, as data. */
function fileText(file: DiffFile): string {
  const before = file.oldPath === null ? '' : `, was ${plainPath(file.oldPath)}`;
  const kind = file.isSymlink ? 'a symbolic link, ' : '';
  const head = `### ${plainPath(file.path)} (${kind}${file.status}${before})`;
  const body = file.hunks.flatMap(({ oldStart, newStart, lines }) => {
    const count = (left: 'added' | 'removed') => lines.filter(({ kind }) => kind !== left).length;
    const range = `@@ -${oldStart},${count('added')} +${newStart},${count('removed')} @@`;
    return [range, ...lines.map(({ kind, text }) => marks[kind] + text.replace(/\r$/, ''))];
  });
  return body.length === 0 ? `${head}\nNo lines have changed.` : `${head}\n${fenced('diff', body.join('\n'))}`;
}

const shownRanges = 6;

/** A file that has to be read, with the lines that can be commented. */
export function listedFile(file: DiffFile): string {
  const side = file.status === 'deleted' ? 'LEFT' : 'RIGHT';
  const ranges = commentableRanges(file, side).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`));
  const more = ranges.length > shownRanges ? ', …' : '';
  const lines = ranges.length === 0 ? '' : `, lines ${ranges.slice(0, shownRanges).join(', ')}${more}`;
  return `- ${plainPath(file.path)} (${file.status}${lines})`;
}
