import type { SubmittedFinding } from '../../protocol/index.ts';
import { type AnchorError, ambiguous, notCommentable, notFound, unknownPath } from './anchor-errors.ts';
import type { DiffFile, Side } from './diff-types.ts';
import { findLines, findParts, type TextMatch } from './find-text.ts';
import { type NumberedLine, numberedLines, sideRuns } from './sides.ts';
import { type QuotedLines, replacementFor } from './suggestion.ts';

/** Place at which a finding is published. */
export type Anchor =
  | {
      readonly placement: 'inline';
      readonly side: Side;
      /** Last line of the finding. */
      readonly line: number;
      /** First line of the finding, when there are several. */
      readonly startLine?: number;
      /** Whole lines that take the place of `startLine` to `line`, '' for none: a suggestion. */
      readonly replacement?: string;
      /** Lines that the replacement is made of. */
      readonly quoted?: QuotedLines;
    }
  | { readonly placement: 'file' | 'summary'; readonly reason: AnchorReason };
export type AnchorReason = 'noText' | 'outsideDiff' | 'binary' | 'deleted';
export type AnchorResult = { readonly anchor: Anchor; readonly file: DiffFile } | { readonly error: AnchorError };

/** Side and lines of an anchor; without lines, the side of the head. */
export function placeOf(anchor: Anchor): { readonly side: Side; readonly line?: number; readonly startLine?: number } {
  if (anchor.placement !== 'inline') return { side: 'RIGHT' };
  const { side, line, startLine } = anchor;
  return { side, line, ...(startLine !== undefined && { startLine }) };
}

type Finding = Pick<SubmittedFinding, 'path' | 'oldText' | 'newText' | 'line' | 'side'>;
type Runs = readonly (readonly NumberedLine[])[];

/**
 * Finds the place of a finding. The text that the model copied is trusted, its line number is not: a line is only a hint
 * among several places with the same text. A comment may stand only on lines of one and the same hunk: GitHub refuses any
 * other place, and with it the whole review (REST, "Create a review for a pull request"; 422).
 *
 * @param readHead the text of a file at the head, null when it is missing
 */
export function anchorFinding(
  files: readonly DiffFile[],
  finding: Finding,
  readHead: (path: string) => string | null,
): AnchorResult {
  const file = fileOf(files, finding.path, finding.side);
  if (!file) return { error: unknownPath(files, finding.path) };
  if (file.isBinary || file.isSubmodule) return { anchor: { placement: 'file', reason: 'binary' }, file };
  const side = finding.side ?? (file.status === 'deleted' ? 'LEFT' : 'RIGHT');
  for (const wanted of wantedTexts(finding)) {
    const found = place(file, side, wanted, readHead);
    if (found) return found;
  }
  if (finding.oldText === undefined || finding.oldText.trim() === '') return byLine(file, side, finding.line);
  return missing(file, side, finding);
}

/** Text to find, and its replacement. */
interface Wanted {
  readonly oldText: string;
  readonly newText: string | undefined;
  readonly line: number | undefined;
}

/**
 * A line end behind the last line adds no line: it may be there or not, in the old text and in the new. Empty lines around
 * the text are looked for, too, but given up when they are not there.
 */
function wantedTexts({ oldText, newText, line }: Finding): Wanted[] {
  if (oldText === undefined || oldText.trim() === '') return [];
  const old = withoutLineEnd(oldText);
  const fresh = newText === undefined ? undefined : withoutLineEnd(newText);
  const bare = old.replace(/^\n+/, '').replace(/(?<!\n)\n+$/, '');
  const first = { oldText: old, newText: isOneEmptyLine(newText) ? undefined : fresh, line };
  if (bare === old) return [first];
  const before = old.indexOf(bare);
  const after = old.length - bare.length - before;
  return [first, { ...first, oldText: bare, newText: first.newText && trimLineEnds(first.newText, before, after) }];
}

export const withoutLineEnd = (text: string): string => text.replaceAll('\r\n', '\n').replace(/\n$/, '');
/** Whether a text is one empty line. A suggestion cannot express it: an empty one removes the lines. */
const isOneEmptyLine = (text: string | undefined): boolean => text === '\n' || text === '\r\n';

function trimLineEnds(text: string, before: number, after: number): string {
  const start = Math.min(before, text.length - text.replace(/^\n+/, '').length);
  const end = Math.min(after, text.length - text.replace(/(?<!\n)\n+$/, '').length);
  return text.slice(start, Math.max(start, text.length - end));
}

function place(
  file: DiffFile,
  side: Side,
  wanted: Wanted,
  readHead: (path: string) => string | null,
): AnchorResult | undefined {
  const runs = sideRuns(file, side);
  const whole = findLines(runs, wanted.oldText);
  if (side === 'RIGHT' && whole.some(({ isExact }) => !isExact)) {
    // The exact text elsewhere in the file is the copied one, not lines of the diff that differ in white space, unless the given
    // line names those.
    const exact = findLines(headLines(readHead(file.path)), wanted.oldText).filter(({ isExact }) => isExact);
    const isNamed = whole.some((match) => covers(match, wanted.line));
    if (exact.some(({ first }) => !isNamed || first.line === wanted.line)) return outside(file);
  }
  if (whole.some((match) => covers(match, wanted.line))) return decide(file, side, whole, wanted);
  if (whole.length > 0 && (wanted.line === undefined || side === 'LEFT')) return decide(file, side, whole, wanted);
  const head: Runs = file.status === 'deleted' ? [] : headLines(readHead(file.path));
  const inHead = findLines(head, wanted.oldText);
  if (whole.length > 0) {
    // The given line has this text, but is not in the diff: the finding means that line.
    return inHead.some(({ first }) => first.line === wanted.line) ? outside(file) : decide(file, side, whole, wanted);
  }
  // The finding rather means a whole line elsewhere in the file than a part of another line.
  if (inHead.length > 0) return outside(file);
  const parts = findParts(runs, wanted.oldText);
  if (parts.length > 0) return decide(file, side, parts, wanted);
  return findParts(head, wanted.oldText).length > 0 ? outside(file) : undefined;
}

const headLines = (text: string | null): Runs => (text === null ? [] : [numberedLines(text)]);
const covers = ({ first, last }: TextMatch, line: number | undefined): boolean =>
  line !== undefined && first.line <= line && line <= last.line;

/** Place of a text that is in the file but not in the diff: a comment on the file. */
const outside = (file: DiffFile): AnchorResult => ({ anchor: { placement: 'file', reason: 'outsideDiff' }, file });

/** The side of the finding does not hold the text. A removed text can be commented on, but not changed. */
function missing(file: DiffFile, side: Side, finding: Finding): AnchorResult {
  if (file.status === 'deleted') return { anchor: { placement: 'file', reason: 'deleted' }, file };
  const [wanted] = wantedTexts(finding);
  const elsewhere = wanted ? findLines(sideRuns(file, side === 'RIGHT' ? 'LEFT' : 'RIGHT'), wanted.oldText) : [];
  if (finding.side === undefined && finding.newText === undefined && wanted && elsewhere.length > 0) {
    return decide(file, 'LEFT', elsewhere, wanted);
  }
  return { error: notFound(file, side, elsewhere) };
}

function decide(
  file: DiffFile,
  side: Side,
  found: readonly TextMatch[],
  { newText, line, oldText }: Wanted,
): AnchorResult {
  // Twice in one line is one place to comment on, but two places to change.
  const matches = newText === undefined ? found.filter(({ last }, index) => found[index - 1]?.last !== last) : found;
  const chosen = choose(matches, line);
  if (!chosen) return { error: ambiguous(file, matches) };
  return { anchor: inline(chosen, side, { oldText, newText: newText === oldText ? undefined : newText }), file };
}

/** The entry of a path. A path may have two, when a file became a link: the old file on the left, the new one on the right. */
function fileOf(files: readonly DiffFile[], path: string, side: Side | undefined): DiffFile | undefined {
  const plain = path.trim().replace(/^\.?\/+/, '');
  const isMeant: ((file: DiffFile) => boolean)[] = [
    (file) => file.path === path,
    (file) => file.path === plain,
    (file) => file.path === plain.replace(/^[ab]\//, ''),
    (file) => file.oldPath === plain,
  ];
  const composed = plain.normalize('NFC');
  const isSpelledOtherwise = (file: DiffFile) => file.path.normalize('NFC') === composed;
  // Two names that differ only in their composition are two files.
  if (new Set(files.filter(isSpelledOtherwise).map((file) => file.path)).size === 1) isMeant.push(isSpelledOtherwise);
  for (const test of isMeant) {
    const found = files.filter(test);
    if (found.length > 0) return found.find(({ status }) => (status === 'deleted') === (side === 'LEFT')) ?? found[0];
  }
  return undefined;
}

function byLine(file: DiffFile, side: Side, line: number | undefined): AnchorResult {
  if (line === undefined) return { anchor: { placement: 'file', reason: 'noText' }, file };
  const isThere = sideRuns(file, side).some((run) => run.some((each) => each.line === line));
  if (isThere) return { anchor: { placement: 'inline', side, line }, file };
  return { error: notCommentable(file, side, line) };
}

/** The only place, or the one nearest to the hint. */
function choose(matches: readonly TextMatch[], hint: number | undefined): TextMatch | undefined {
  if (matches.length <= 1) return matches[0];
  if (hint === undefined) return undefined;
  const distance = ({ first, last }: TextMatch) =>
    hint < first.line ? first.line - hint : hint > last.line ? hint - last.line : 0;
  const [nearest, next] = [...matches].sort((a, b) => distance(a) - distance(b));
  return nearest && next && distance(nearest) < distance(next) ? nearest : undefined;
}

function inline(
  { first, last, lines, at }: TextMatch,
  side: Side,
  { oldText, newText }: Pick<Wanted, 'oldText' | 'newText'>,
): Anchor {
  const quoted = { lines: lines.map(({ text }) => text), oldText, ...(at !== undefined && { at }) };
  // A removed line cannot be changed.
  const replacement = newText === undefined || side === 'LEFT' ? null : replacementFor(quoted, newText);
  return {
    placement: 'inline',
    side,
    line: last.line,
    ...(first.line !== last.line && { startLine: first.line }),
    ...(replacement !== null && { replacement, quoted }),
  };
}
