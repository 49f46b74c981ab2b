import type { FindingHunk } from '../../protocol/index.ts';
import { type Anchor, type DiffFile, type DiffHunk, type DiffLine, type Side, scanCode } from '../anchors/index.ts';
import { hunksFact, type ReviewStore, type StoredFinding } from '../store/index.ts';
import { runLimits } from './limits.ts';
import type { ReviewNotes } from './notes.ts';

const numberOn = ({ oldLine, newLine }: DiffLine, side: Side): number | null => (side === 'LEFT' ? oldLine : newLine);
const sizeOf = (lines: readonly DiffLine[]): number =>
  lines.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, 0);

/** Range of lines of a hunk; `to` is excluded. */
interface Extent {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the diff lines around a finding: `hunkContext` lines before and after it within its hunk, up to `hunkBytes`.
 *
 * @param path of the finding, by the present name of the file
 * @returns undefined for a finding without lines in the diff
 */
export function hunkAround(files: readonly DiffFile[], path: string, anchor: Anchor): FindingHunk | undefined {
  if (anchor.placement !== 'inline') return undefined;
  const { side, line, startLine = line } = anchor;
  const isOwn = (each: DiffLine): boolean => {
    const number = numberOn(each, side);
    return number !== null && number >= startLine && number <= line;
  };
  for (const hunk of files.filter((file) => file.path === path).flatMap(({ hunks }) => hunks)) {
    const last = hunk.lines.findLastIndex(isOwn);
    if (last >= 0) return excerpt(path, hunk, around(hunk, hunk.lines.findIndex(isOwn), last));
  }
  return undefined;
}

/** Shrinks the range to `hunkBytes`. The last line of the finding, which carries the comment, always stays. */
function around({ lines }: DiffHunk, first: number, last: number): Extent {
  const { hunkContext, hunkBytes } = runLimits;
  let from = Math.max(0, first - hunkContext);
  let to = Math.min(lines.length, last + 1 + hunkContext);
  let size = sizeOf(lines.slice(from, to).map(shortened));
  const without = (index: number) => sizeOf(lines.slice(index, index + 1).map(shortened));
  while (size > hunkBytes && to - from > 1) {
    // Drops the lines farthest from the finding first, then the first lines of the finding.
    const isAfter = to - 1 - last > 0 && to - 1 - last >= first - from;
    size -= without(isAfter ? to - 1 : from);
    if (isAfter) to -= 1;
    else from += 1;
  }
  return { from, to };
}

/** Truncates a long line, for example of minified code. */
function shortened(line: DiffLine): DiffLine {
  const text = line.text.replace(/\r$/, '');
  const { hunkLine } = runLimits;
  return { ...line, text: text.length > hunkLine ? `${text.slice(0, hunkLine).toWellFormed()}…` : text };
}

function excerpt(path: string, { oldStart, newStart, lines }: DiffHunk, { from, to }: Extent): FindingHunk {
  const before = lines.slice(0, from);
  return {
    path,
    oldStart: oldStart + before.filter(({ oldLine }) => oldLine !== null).length,
    newStart: newStart + before.filter(({ newLine }) => newLine !== null).length,
    lines: lines
      .slice(from, to)
      .map(shortened)
      .map(({ kind, oldLine, newLine, text }) => ({
        kind,
        ...(oldLine !== null && { oldLine }),
        ...(newLine !== null && { newLine }),
        text,
      })),
  };
}

/** Removes invisible characters. @returns undefined for a possible secret: the page then shows only the text quoted by the finding */
function cleaned(hunk: FindingHunk, secrets: readonly string[]): FindingHunk | undefined {
  const { text, blockedBy } = scanCode(hunk.lines.map((line) => line.text).join('\n'), secrets);
  const texts = text.split('\n');
  if (blockedBy || texts.length !== hunk.lines.length) return undefined;
  return { ...hunk, lines: hunk.lines.map((line, index) => ({ ...line, text: texts[index] ?? '' })) };
}

/** Saves the hunks of the findings of a draft, for the page. They are deleted with the run. */
export async function saveHunks(
  store: Pick<ReviewStore, 'setFact'>,
  runId: string,
  notes: Pick<ReviewNotes, 'findings'>,
  findings: readonly Pick<StoredFinding, 'findingId'>[],
  secrets: readonly string[],
): Promise<void> {
  const wanted = new Set(findings.map(({ findingId }) => findingId));
  const hunks = notes.findings.flatMap(({ findingId, hunk }) => {
    const clean = hunk && wanted.has(findingId) ? cleaned(hunk, secrets) : undefined;
    return clean ? [[findingId, clean] as const] : [];
  });
  await store.setFact(hunksFact(runId), hunks.length === 0 ? null : JSON.stringify(Object.fromEntries(hunks)));
}
