import type { ApprovalNeed } from '../../tool.ts';
import { cutLine } from '../text.ts';
import { decodeText, sniff, sniffBytes } from './content.ts';
import { openFile } from './handles.ts';
import { limits } from './settings.ts';

/** Bytes of either side of a change that is compared for a question. */
const comparedBytes = 262_144;
/** Differing lines after which a comparison is given up. */
const maxEdits = 2_000;
const maxLines = 400;

/** Adds the diff of a change to a question about a file. @param afterOf new text of the file; undefined: unknown */
export function withPreview(
  need: ApprovalNeed | undefined,
  afterOf: (before: string) => string | undefined,
): ApprovalNeed | undefined {
  return need && { ...need, preview: () => previewOf(need.target, afterOf) };
}

async function previewOf(path: string, afterOf: (before: string) => string | undefined): Promise<string | undefined> {
  const before = await textOf(path).catch(() => undefined);
  const after = before === undefined ? undefined : afterOf(before);
  if (before === undefined || after === undefined || Buffer.byteLength(after) > comparedBytes) return undefined;
  const { structuredPatch } = await import('diff');
  const patch = structuredPatch(path, path, before, after, '', '', { context: 3, maxEditLength: maxEdits });
  if (!patch) return undefined;
  const lines = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: changed }) => [
    `@@ -${rangeOf(oldStart, oldLines)} +${rangeOf(newStart, newLines)} @@`,
    ...changed.map((line) => cutLine(line.replace(/\r$/, ''), limits.diffLineChars)),
  ]);
  const rest = lines.length - maxLines;
  const shown = rest > 0 ? [...lines.slice(0, maxLines), `… and ${rest} more lines`] : lines;
  return [`--- ${path}`, `+++ ${path}`, ...shown].join('\n');
}

/** Range of a hunk; a range without lines names the line before it. */
const rangeOf = (start: number, count: number): string => `${count === 0 ? start - 1 : start},${count}`;

/** Empty for a file that does not exist; undefined for a file that is not text or too large to compare. */
async function textOf(path: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof openFile>>;
  try {
    file = await openFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
  try {
    if (Number(file.stats.size) > comparedBytes) return undefined;
    const bytes = await file.handle.readFile();
    const sniffed = sniff(bytes.subarray(0, sniffBytes));
    return sniffed.kind === 'text' ? decodeText(bytes, sniffed) : undefined;
  } finally {
    await file.close();
  }
}
