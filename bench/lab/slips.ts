/** The usual slips of models when they write the text to replace. Each takes an edit that fits and returns the edit of a model. */
import type { Edit } from './task.ts';

/** Changes of one file. `slip` is the fault of the model's first try. */
export interface Change {
  readonly path: string;
  readonly edits: readonly Edit[];
  readonly slip?: Slip;
}

const lines = (text: string): string[] => text.split('\n');
const both =
  (change: (text: string) => string) =>
  (edit: Edit): Edit => ({ old: change(edit.old), new: change(edit.new) });

/** Takes the indentation off that all lines of the old text share, from both. */
function dedent(edit: Edit): Edit {
  const widths = lines(edit.old)
    .filter((line) => line.trim() !== '')
    .map((line) => line.length - line.trimStart().length);
  const width = Math.min(...widths);
  return both((text) =>
    lines(text)
      .map((line) => line.slice(Math.min(width, line.length - line.trimStart().length)))
      .join('\n'),
  )(edit);
}

const numbered = (text: string): string =>
  lines(text)
    .map((line, index) => `${String(index + 12).padStart(5)}\t${line}`)
    .join('\n');

export const slips = {
  none: (edit: Edit): Edit => edit,
  blanksForTabs: both((text) => text.replaceAll('\t', '    ')),
  wideBlanksForTabs: both((text) => text.replaceAll('\t', '        ')),
  tabsForBlanks: both((text) => text.replace(/^(?: {4})+/gm, (blanks) => '\t'.repeat(blanks.length / 4))),
  dedented: dedent,
  plainQuotes: both((text) =>
    text
      .replace(/[“”]/g, '"')
      .replace(/[‘’]/g, "'")
      .replace(/–/g, '-')
      .replace(/\u00a0/g, ' '),
  ),
  noTrailingBlanks: both((text) => text.replace(/[ \t]+$/gm, '')),
  lineNumbers: both(numbered),
  codeFence: both((text) => `\`\`\`\n${text}\n\`\`\``),
  writtenOutNewlines: both((text) => text.replaceAll('\n', '\\n')),
  lineEnds: both((text) => text.replaceAll('\r\n', '\n')),
} as const satisfies Record<string, (edit: Edit) => Edit>;

export type Slip = keyof typeof slips;
