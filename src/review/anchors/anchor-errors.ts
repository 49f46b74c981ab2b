import type { DiffFile, Side } from './diff-types.ts';
import type { TextMatch } from './find-text.ts';
import { commentableRanges } from './sides.ts';

export const anchorErrorCodes = ['pathNotInDiff', 'oldTextNotFound', 'oldTextAmbiguous', 'lineNotCommentable'] as const;
/** Error for the model, so that it can submit the finding again in the same turn. */
export interface AnchorError {
  readonly code: (typeof anchorErrorCodes)[number];
  readonly message: string;
}

/** Places and names in one message. */
const shownPlaces = 8;

export function notFound(file: DiffFile, side: Side, elsewhere: readonly TextMatch[]): AnchorError {
  const other = side === 'RIGHT' ? 'LEFT' : 'RIGHT';
  const hint =
    elsewhere.length > 0
      ? ` It stands on the ${other} side, at ${linesText(elsewhere)}: give side ${other}${other === 'LEFT' ? ' and no newText' : ''} if that is meant.`
      : '';
  return {
    code: 'oldTextNotFound',
    message: `oldText is not in ${file.path}.${hint} Copy whole lines exactly from the head, without marks of the diff. Lines of the diff on the ${side} side: ${rangesText(file, side)}.`,
  };
}

export function ambiguous(file: DiffFile, matches: readonly TextMatch[]): AnchorError {
  return {
    code: 'oldTextAmbiguous',
    message: `oldText occurs ${matches.length} times in the diff of ${file.path}: at ${linesText(matches)}. Copy more of the lines around it, or give line.`,
  };
}

export function notCommentable(file: DiffFile, side: Side, line: number): AnchorError {
  return {
    code: 'lineNotCommentable',
    message: `Line ${line} of ${file.path} is not part of the diff on the ${side} side. Give oldText, or a line in ${rangesText(file, side)}.`,
  };
}

export function unknownPath(files: readonly DiffFile[], path: string): AnchorError {
  const name = path.split('/').at(-1) ?? path;
  const similar = files.filter((file) => file.path.endsWith(name)).map((file) => file.path);
  const isSimilar = similar.length > 0;
  const names = isSimilar ? similar : files.map((file) => file.path);
  const known = names.slice(0, shownPlaces).join(', ') + (names.length > shownPlaces ? ', …' : '');
  return {
    code: 'pathNotInDiff',
    message: `${path} is not changed by this pull request. ${isSimilar ? 'Did you mean' : 'Changed files are'} ${known}${isSimilar ? '?' : '.'}`,
  };
}

function linesText(matches: readonly TextMatch[]): string {
  const places = [...new Set(matches.map(({ first }) => first.line))];
  const more = places.length > shownPlaces ? ` and ${places.length - shownPlaces} more` : '';
  return `line${places.length === 1 ? '' : 's'} ${places.slice(0, shownPlaces).join(', ')}${more}`;
}

function rangesText(file: DiffFile, side: Side): string {
  const ranges = commentableRanges(file, side).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`));
  return ranges.slice(0, shownPlaces).join(', ') + (ranges.length > shownPlaces ? ', …' : '') || 'none';
}
