import type { Severity } from '../../protocol/index.ts';
import type { Side } from './diff-types.ts';
import { bare } from './fingerprint.ts';
import type { LineRange } from './moved-lines.ts';
import { agreement, isBlank } from './titles.ts';

/** Lines before and after a finding, the nearest first, without white space. Lines without a letter or digit are left out. */
export interface Neighbours {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Facts that identify a finding. */
export interface FindingIdentity {
  readonly path: string;
  /** Path of the file in the base, when the change renames it. */
  readonly oldPath?: string | undefined;
  readonly side: Side;
  /** Undefined for a finding about a whole file, or about lines outside of the diff. */
  readonly lines?: LineRange | undefined;
  /** Line that the agent named for a finding without `lines`. */
  readonly namedLine?: number | undefined;
  readonly neighbours?: Neighbours | undefined;
  readonly title: string;
  /** Describes the problem when the title is empty. */
  readonly body: string;
  readonly severity: Severity;
  readonly oldText?: string | undefined;
}

/** Finding of an earlier review. */
export interface KnownFinding extends FindingIdentity {
  /**
   * `present`: `path` and `lines` are those of the present head. `gone`: the file or its lines were removed. `unknown`: the commits
   * could not be compared, so `path` and `lines` are those of the earlier head.
   */
  readonly place: 'present' | 'gone' | 'unknown';
  /** True when a person skipped or dismissed the finding. */
  readonly isRefused: boolean;
  /** Title and severity of the agent, which a person may have changed before the publication. */
  readonly submitted?: Pick<FindingIdentity, 'title' | 'severity'> | undefined;
}

/** Least agreement of two titles about the same text at the same place. */
const looselySame = 0.5;
/** Least agreement of two titles when the text has changed, or when both findings are in one review. */
const sameTitle = 0.7;

const ranks: Readonly<Record<Severity, number>> = { critical: 0, major: 1, minor: 2, note: 3 };

/** True for two findings of one review that say the same: the same text, the same lines and a similar title. */
export function areOneFinding(left: FindingIdentity, right: FindingIdentity): boolean {
  return (
    left.path === right.path &&
    left.side === right.side &&
    bare(left.oldText ?? '') === bare(right.oldText ?? '') &&
    haveSameLines(left, right) &&
    described(left, right) >= sameTitle
  );
}

/** True for a finding of two drafts: the agent may have corrected its path and quoted text. */
export const areOneReport = (left: FindingIdentity, right: FindingIdentity): boolean =>
  described(left, right) >= looselySame;

/** True for two findings at the same lines. */
export const haveSameLines = (left: FindingIdentity, right: FindingIdentity): boolean =>
  left.lines?.first === right.lines?.first &&
  left.lines?.last === right.lines?.last &&
  left.namedLine === right.namedLine;

/** True when the present lines of an earlier finding are known. */
export const hasKnownLines = ({ place, side, lines }: KnownFinding): boolean =>
  place === 'present' && side === 'RIGHT' && lines !== undefined;

/**
 * True when a finding repeats one of an earlier review: both describe the same problem, and text and place agree, or the place is the one
 * that moved. A doubtful finding is another one, because a wrong merge hides a defect and a wrong split costs one comment.
 */
export function isSameFinding(finding: FindingIdentity, known: KnownFinding): boolean {
  if (finding.side !== known.side || isMoreSevere(finding, known)) return false;
  const { submitted } = known;
  const alike = Math.max(described(finding, known), submitted ? described(finding, { ...known, ...submitted }) : 0);
  if (alike < looselySame) return false;
  const isSameText = bare(finding.oldText ?? '') !== '' && bare(finding.oldText ?? '') === bare(known.oldText ?? '');
  const isAround = areNeighbours(finding.neighbours, known.neighbours);
  if (!isSameFile(finding, known)) return known.place === 'gone' && isSameText && isAround && alike >= sameTitle;
  if (!finding.lines || !known.lines) return isSameWithoutLine(finding, known, alike, isSameText);
  if (hasKnownLines(known)) return overlap(finding.lines, known.lines) && (isSameText || alike >= sameTitle);
  const hasNeighbours = finding.neighbours !== undefined && known.neighbours !== undefined;
  const isThere = hasNeighbours ? isAround : known.place === 'unknown' && overlap(finding.lines, known.lines);
  return isThere && (isSameText || (known.place === 'unknown' && alike >= sameTitle));
}

/** Two grades more severe, or one more than the finding that a person refused: the person judged a smaller problem. */
function isMoreSevere(finding: FindingIdentity, { severity, submitted, isRefused }: KnownFinding): boolean {
  const judged = Math.min(ranks[severity], ranks[submitted?.severity ?? severity]);
  return judged - ranks[finding.severity] >= (isRefused ? 1 : 2);
}

const described = (left: FindingIdentity, right: FindingIdentity): number =>
  isBlank(left.title) && isBlank(right.title) ? agreement(left.body, right.body) : agreement(left.title, right.title);

function isSameFile(finding: FindingIdentity, known: KnownFinding): boolean {
  if (finding.path === known.path) return true;
  return known.place === 'unknown' && [finding.path, finding.oldPath].includes(known.oldPath ?? known.path);
}

function isSameWithoutLine(finding: FindingIdentity, known: KnownFinding, alike: number, isSameText: boolean): boolean {
  const quotes = [finding, known].filter(({ oldText = '' }) => bare(oldText) !== '').length;
  if (!finding.lines && !known.lines) return alike >= sameTitle && (isSameText || quotes < 2);
  return alike === 1 && quotes < 2;
}

const overlap = (a: LineRange, b: LineRange): boolean => a.first <= b.last && b.first <= a.last;

/** Lines compared on each side. */
const comparedLines = 3;

/** Takes the neighbours of a range from the lines of one side around it. */
export function neighboursIn(
  lines: readonly { readonly text: string; readonly line: number }[],
  { first, last }: LineRange,
): Neighbours {
  const distinctive = (part: typeof lines) =>
    part.map(({ text }) => bare(text).slice(0, 200)).filter((text) => /[\p{L}\p{N}]/u.test(text));
  return {
    before: distinctive(lines.filter(({ line }) => line < first).toReversed()).slice(0, comparedLines),
    after: distinctive(lines.filter(({ line }) => line > last)).slice(0, comparedLines),
  };
}

/** True when at least half of the lines around two places agree; without any line around either, too. */
function areNeighbours(left: Neighbours | undefined, right: Neighbours | undefined): boolean {
  if (!left || !right) return false;
  const pairs = [...paired(left.before, right.before), ...paired(left.after, right.after)];
  const all = [left, right].map(({ before, after }) => before.length + after.length);
  if (pairs.length === 0) return all.every((count) => count === 0);
  return pairs.filter((isEqual) => isEqual).length * 2 >= pairs.length;
}

const paired = (left: readonly string[], right: readonly string[]): boolean[] =>
  left.slice(0, right.length).map((line, index) => line === right[index]);
