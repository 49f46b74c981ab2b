import { count } from '../../../lib/index.ts';
import { diffName, unshownMark } from '../../../protocol/index.ts';
import type { ApprovalNeed } from '../../tool.ts';
import { decodeText, sniff, sniffBytes } from './content.ts';
import { openFile } from './handles.ts';

/** Bytes of either side of a change that is compared for a question. */
const comparedBytes = 262_144;
/** Differing lines after which a comparison is given up. */
const maxEdits = 2_000;
/** Lines of a preview, and characters of all its lines. */
const limits = { lines: 400, chars: 65_536 };
const tooLarge = Symbol('too large to compare');

interface Hunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly string[];
}

/** Adds the diff of a change to a question about a file. @param afterOf new text of the file; undefined: unknown */
export function withPreview(
  need: ApprovalNeed | undefined,
  afterOf: (before: string) => string | undefined,
): ApprovalNeed | undefined {
  return need && { ...need, preview: () => previewOf(need.target, afterOf) };
}

async function previewOf(path: string, afterOf: (before: string) => string | undefined): Promise<string | undefined> {
  const before = await textOf(path).catch(() => undefined);
  const heads = [`--- ${diffName(path)}`, `+++ ${diffName(path)}`];
  const unshown = [...heads, `${unshownMark}the file is too large to compare`].join('\n');
  if (before === tooLarge) return unshown;
  const after = before === undefined ? undefined : afterOf(before);
  if (before === undefined || after === undefined) return undefined;
  if (Buffer.byteLength(after) > comparedBytes) return unshown;
  const { structuredPatch } = await import('diff');
  const patch = structuredPatch(path, path, before, after, '', '', { context: 3, maxEditLength: maxEdits });
  if (!patch) return unshown;
  return [...heads, ...boundedLines(patch.hunks)].join('\n');
}

/** Lines of the hunks up to the limits, with true headers; the number of the others follows. */
function boundedLines(hunks: readonly Hunk[]): string[] {
  const shown: string[] = [];
  let room = limits.chars;
  let left = hunks.reduce((sum, { lines }) => sum + lines.length, 0);
  for (const { oldStart, newStart, lines } of hunks) {
    const fitting: string[] = [];
    for (const line of lines) {
      if (shown.length + fitting.length >= limits.lines || line.length > room) break;
      room -= line.length;
      fitting.push(line.replace(/\r$/, ''));
    }
    const lengthWithout = (sign: string) =>
      fitting.filter((line) => !line.startsWith(sign) && !line.startsWith('\\')).length;
    const ranges = `-${rangeOf(oldStart, lengthWithout('+'))} +${rangeOf(newStart, lengthWithout('-'))}`;
    if (fitting.length > 0) shown.push(`@@ ${ranges} @@`, ...fitting);
    left -= fitting.length;
    if (fitting.length < lines.length) break;
  }
  return left > 0 ? [...shown, `${unshownMark}${count(left, 'more line')}`] : shown;
}

/** Range of a hunk; a range without lines names the line before it. */
const rangeOf = (start: number, length: number): string => `${length === 0 ? start - 1 : start},${length}`;

/** Empty for a file that does not exist; undefined for a file that is not text. */
async function textOf(path: string): Promise<string | typeof tooLarge | undefined> {
  let file: Awaited<ReturnType<typeof openFile>>;
  try {
    file = await openFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
  try {
    if (Number(file.stats.size) > comparedBytes) return tooLarge;
    const bytes = await file.handle.readFile();
    const sniffed = sniff(bytes.subarray(0, sniffBytes));
    return sniffed.kind === 'text' ? decodeText(bytes, sniffed) : undefined;
  } finally {
    await file.close();
  }
}
