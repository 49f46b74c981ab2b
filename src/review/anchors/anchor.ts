import type { SubmittedFinding } from '../../protocol/index.ts';
import type { DiffFile, Side } from './diff-types.ts';
import { findLines, findParts, type TextMatch } from './find-text.ts';
import { commentableRanges, type NumberedLine, sideRuns } from './sides.ts';

/** Where a finding is told. */
export type Anchor =
  | {
      readonly placement: 'inline';
      readonly side: Side;
      /** The last line it is about. */
      readonly line: number;
      /** The first one, when there are several. */
      readonly startLine?: number;
      /** Whole lines that take the place of `startLine` to `line`: a suggestion. */
      readonly replacement?: string;
    }
  | { readonly placement: 'file' | 'summary'; readonly reason: AnchorReason };
export type AnchorReason = 'noText' | 'outsideDiff' | 'binary' | 'deleted';

export const anchorErrorCodes = ['pathNotInDiff', 'oldTextNotFound', 'oldTextAmbiguous', 'lineNotCommentable'] as const;
/** What the model is told, so that it can hand the finding in anew in the same turn. */
export interface AnchorError {
  readonly code: (typeof anchorErrorCodes)[number];
  readonly message: string;
}
export type AnchorResult = { readonly anchor: Anchor; readonly file: DiffFile } | { readonly error: AnchorError };

const shownPlaces = 8;

/**
 * Finds out where a finding belongs. The text that the model copied is trusted, its line number is not: a line is only a hint
 * among several places with the same text. A comment may stand on a line of a hunk only, and all of its lines in the same
 * hunk: everything else GitHub refuses, and with it the whole review.
 *
 * @param readHead the text of a file at the head, null when there is none
 */
export function anchorFinding(
  files: readonly DiffFile[],
  finding: Pick<SubmittedFinding, 'path' | 'oldText' | 'newText' | 'line' | 'side'>,
  readHead: (path: string) => string | null,
): AnchorResult {
  const file = fileOf(files, finding.path);
  if (!file) return { error: unknownPath(files, finding.path) };
  if (file.isBinary || file.isSubmodule) return { anchor: { placement: 'file', reason: 'binary' }, file };
  const side = finding.side ?? (file.status === 'deleted' ? 'LEFT' : 'RIGHT');
  const oldText = finding.oldText?.replaceAll('\r\n', '\n').replace(/\n+$/, '') ?? '';
  if (oldText.trim() === '') return byLine(file, side, finding.line);
  const runs = sideRuns(file, side);
  const whole = runs.flatMap((run) => findLines(run, oldText));
  if (whole.length > 0) return decide(file, side, whole, finding);
  const head = file.status === 'deleted' ? null : readHead(file.path);
  // A whole line that is elsewhere in the file is rather meant than a part of another one.
  if (head !== null && findLines(linesOf(head), oldText).length > 0) return outside(file);
  const parts = runs.flatMap((run) => findParts(run, oldText));
  if (parts.length > 0) return decide(file, side, parts, finding);
  if (file.status === 'deleted') return { anchor: { placement: 'file', reason: 'deleted' }, file };
  if (head !== null && findParts(linesOf(head), oldText).length > 0) return outside(file);
  return { error: notFound(file, side) };
}

const linesOf = (text: string): NumberedLine[] =>
  text.split('\n').map((each, index) => ({ text: each, line: index + 1 }));

/** Text that is in the file but not in the diff can be spoken of, but not at its line. */
const outside = (file: DiffFile): AnchorResult => ({ anchor: { placement: 'file', reason: 'outsideDiff' }, file });

function decide(
  file: DiffFile,
  side: Side,
  found: readonly TextMatch[],
  { newText, line }: Pick<SubmittedFinding, 'newText' | 'line'>,
): AnchorResult {
  // Twice in one line is one place to comment on, but two places to change.
  const matches = newText === undefined ? found.filter(({ last }, index) => found[index - 1]?.last !== last) : found;
  const chosen = choose(matches, line);
  return chosen ? { anchor: inline(chosen, side, newText), file } : { error: ambiguous(file, matches) };
}

function fileOf(files: readonly DiffFile[], path: string): DiffFile | undefined {
  const plain = path.trim().replace(/^\.?\/+/, '');
  return (
    files.find((file) => file.path === path) ??
    files.find((file) => file.path === plain) ??
    files.find((file) => file.path === plain.replace(/^[ab]\//, '')) ??
    files.find((file) => file.oldPath === plain)
  );
}

function byLine(file: DiffFile, side: Side, line: number | undefined): AnchorResult {
  if (line === undefined) return { anchor: { placement: 'file', reason: 'noText' }, file };
  const isThere = sideRuns(file, side).some((run) => run.some((each) => each.line === line));
  if (isThere) return { anchor: { placement: 'inline', side, line }, file };
  return {
    error: {
      code: 'lineNotCommentable',
      message: `Line ${line} of ${file.path} is not part of the diff on the ${side} side. Give oldText, or a line in ${rangesText(file, side)}.`,
    },
  };
}

/** The only place, or the one that is nearest to the hint. */
function choose(matches: readonly TextMatch[], hint: number | undefined): TextMatch | undefined {
  if (matches.length <= 1) return matches[0];
  if (hint === undefined) return undefined;
  const distance = ({ first, last }: TextMatch) =>
    hint < first.line ? first.line - hint : hint > last.line ? hint - last.line : 0;
  const [nearest, next] = [...matches].sort((a, b) => distance(a) - distance(b));
  return nearest && next && distance(nearest) < distance(next) ? nearest : undefined;
}

function inline({ first, last, replace }: TextMatch, side: Side, newText: string | undefined): Anchor {
  return {
    placement: 'inline',
    side,
    line: last.line,
    ...(first.line !== last.line && { startLine: first.line }),
    // What was removed cannot be changed any more.
    ...(newText !== undefined && side === 'RIGHT' && { replacement: replace(newText.replaceAll('\r\n', '\n')) }),
  };
}

const notFound = (file: DiffFile, side: Side): AnchorError => ({
  code: 'oldTextNotFound',
  message: `oldText is not in ${file.path}. Copy whole lines exactly as they are at the head, without marks of the diff. Lines of the diff on the ${side} side: ${rangesText(file, side)}.`,
});

function ambiguous(file: DiffFile, matches: readonly TextMatch[]): AnchorError {
  const places = matches.slice(0, shownPlaces).map(({ first }) => first.line);
  const more = matches.length > shownPlaces ? ` and ${matches.length - shownPlaces} more` : '';
  return {
    code: 'oldTextAmbiguous',
    message: `oldText occurs ${matches.length} times in the diff of ${file.path}: at lines ${places.join(', ')}${more}. Copy more of the lines around it, or give line.`,
  };
}

function unknownPath(files: readonly DiffFile[], path: string): AnchorError {
  const name = path.split('/').at(-1) ?? path;
  const similar = files.filter((file) => file.path.endsWith(name)).map((file) => file.path);
  const known = (similar.length > 0 ? similar : files.map((file) => file.path)).slice(0, shownPlaces);
  return {
    code: 'pathNotInDiff',
    message: `${path} is not changed by this pull request. ${similar.length > 0 ? 'Did you mean' : 'Changed files are'} ${known.join(', ')}${known.length < files.length && similar.length === 0 ? ', …' : ''}.`,
  };
}

function rangesText(file: DiffFile, side: Side): string {
  const ranges = commentableRanges(file, side).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`));
  return ranges.slice(0, shownPlaces).join(', ') + (ranges.length > shownPlaces ? ', …' : '') || 'none';
}
