import type { DroppedFinding } from '../../protocol/index.ts';
import {
  areOneFinding,
  type FindingIdentity,
  hasKnownLines,
  haveSameLines,
  isSameFinding,
  placeOf,
  scanCode,
  scanOutput,
  suggestionObstacles,
} from '../anchors/index.ts';
import { type StoredFinding, severityRank } from '../store/index.ts';
import { type EarlierFindings, hunkNeighbours, knownFinding, rangeOf } from './earlier.ts';
import type { ReviewNotes } from './notes.ts';

export interface Composition {
  readonly summary: string;
  readonly findings: readonly StoredFinding[];
  readonly dropped: readonly DroppedFinding[];
  readonly warnings: readonly string[];
  readonly blockedBy: { readonly code: string; readonly message: string } | null;
}

export interface ComposeFacts extends EarlierFindings {
  readonly itemId: string;
  readonly draftId: string;
  /** Texts that must not be published. */
  readonly secrets: readonly string[];
}

type Noted = ReviewNotes['findings'][number];

/**
 * Composes a draft from the submission of the agent: lists minor and repeated findings as dropped, and withholds secrets. Pure.
 */
export function compose(notes: ReviewNotes, facts: ComposeFacts): Composition {
  const scan = new Scan(facts.secrets);
  const findings: Noted[] = [];
  const dropped: DroppedFinding[] = [];
  const repeated: Repeated = new Map();
  for (const each of bySeverity(notes.findings)) {
    const drop = dropOf(each, { taken: findings, repeated }, notes, facts);
    const { severity, path, title } = each.finding;
    if (drop) dropped.push({ ...{ severity, path, title }, ...placeOf(each.anchor), ...drop });
    else findings.push(each);
  }
  dropped.push(...notes.withdrawn);
  return {
    summary: scan.text(notes.isNothing ? nothingText(notes) : notes.summary, 'the summary'),
    findings: findings.map((each, index) => stored(each, index < notes.maxFindings, facts, scan)),
    dropped: dropped.map((each) => ({ ...each, title: scan.dropped(each.title) })),
    warnings: notes.warnings,
    blockedBy: scan.blockedBy,
  };
}

type Drop = Pick<DroppedFinding, 'reason' | 'sameAs'>;
/** The first finding of this review that repeats an earlier one, by the id of the earlier one. */
type Repeated = Map<string, FindingIdentity>;

/** Returns the reason for leaving a finding out, or undefined for a finding of the draft. */
function dropOf(
  noted: Noted,
  { taken, repeated }: { readonly taken: readonly Noted[]; readonly repeated: Repeated },
  notes: ReviewNotes,
  { open, refused }: EarlierFindings,
): Drop | undefined {
  if (severityRank[noted.finding.severity] > severityRank[notes.minSeverity]) return { reason: 'belowMinSeverity' };
  const identity = identityOf(noted);
  const isKnown = (each: StoredFinding) => {
    const known = knownIn(notes, each);
    if (!isSameFinding(identity, known)) return false;
    const first = repeated.get(each.findingId) ?? identity;
    // Without known lines it stands for one place, although equal lines elsewhere look like it.
    if (!hasKnownLines(known) && !haveSameLines(first, identity)) return false;
    repeated.set(each.findingId, first);
    return true;
  };
  const refusal = refused.find(isKnown);
  if (refusal) return { reason: refusal.status === 'skipped' ? 'skipped' : 'dismissed', sameAs: refusal.findingId };
  const published = open.find(isKnown);
  if (published) return { reason: 'alreadyPublished', sameAs: published.findingId };
  const same = taken.find((each) => areOneFinding(identity, identityOf(each)));
  return same && { reason: 'merged', sameAs: same.findingId };
}

const knownIn = ({ earlierPlaces }: ReviewNotes, finding: StoredFinding) =>
  knownFinding(finding, earlierPlaces[finding.findingId]);

function identityOf({ finding, anchor, oldPath, hunk }: Noted): FindingIdentity {
  const { path, title, body, severity, oldText, line } = finding;
  const isInline = anchor.placement === 'inline';
  const side = isInline ? anchor.side : 'RIGHT';
  const lines = isInline ? rangeOf(anchor) : undefined;
  const neighbours = hunk && lines ? hunkNeighbours(hunk, side, lines) : undefined;
  return {
    ...{ path, title, body, severity, oldText },
    ...{ oldPath, side, lines, neighbours },
    namedLine: lines ? undefined : line,
  };
}

const nothingText = ({ totalFiles }: ReviewNotes): string =>
  totalFiles === 0 ? 'Nothing has changed.' : 'The settings exclude all changed files from review.';

const bySeverity = (findings: readonly Noted[]): readonly Noted[] =>
  [...findings].sort((a, b) => severityRank[a.finding.severity] - severityRank[b.finding.severity]);

function stored(noted: Noted, isWithin: boolean, { itemId, draftId }: ComposeFacts, scan: Scan): StoredFinding {
  const { findingId, finding, anchor, fingerprint, obstacle } = noted;
  const { severity, path, oldText, newText } = finding;
  const isInline = anchor.placement === 'inline';
  const what = `a finding about ${path}`;
  const replaces = isInline && anchor.replacement !== undefined ? scan.code(newText ?? '', what) : undefined;
  const isSuggestion = isWithin && replaces !== undefined;
  return {
    findingId,
    draftId,
    itemId,
    severity,
    kind: isSuggestion ? 'suggestion' : 'comment',
    title: scan.text(finding.title, what).replace(/\s+/g, ' '),
    body: scan.text(finding.body, what),
    path,
    side: isInline ? anchor.side : 'RIGHT',
    ...(isInline && { line: anchor.line }),
    ...(isInline && anchor.startLine !== undefined && { startLine: anchor.startLine }),
    // Unchanged, because it identifies the finding. It is never published.
    ...(oldText !== undefined && { oldText }),
    ...(isSuggestion && { newText: replaces }),
    placement: isWithin ? anchor.placement : 'summary',
    fingerprint,
    status: 'accepted',
    isResolved: false,
    isPublished: false,
    warnings: [
      ...(isWithin ? [] : ['Listed in the summary: the review exceeds MaxFindings.']),
      ...(obstacle ? [`Published without a suggestion: ${suggestionObstacles[obstacle]}.`] : []),
    ],
    commentId: null,
    threadNodeId: null,
    url: null,
  };
}

const withheld = '(Withheld: it seems to contain a secret.)';

/** Cleans texts, and stores the first reason that blocks publication. */
class Scan {
  readonly #secrets: readonly string[];
  blockedBy: Composition['blockedBy'] = null;

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
  }

  text(text: string, what: string): string {
    const { text: clean, blockedBy } = scanOutput(text, this.#secrets);
    if (!blockedBy) return clean;
    this.blockedBy ??= { code: blockedBy.code, message: `In ${what}: ${blockedBy.message}` };
    return withheld;
  }

  /** Title of a finding that is not published, so that a secret in it blocks nothing. */
  dropped(title: string): string {
    const { text, blockedBy } = scanOutput(title, this.#secrets);
    return blockedBy ? withheld : text.replace(/\s+/g, ' ');
  }

  /** @returns undefined for code that would need changes: it is not suggested */
  code(text: string, what: string): string | undefined {
    const { blockedBy, changes } = scanCode(text, this.#secrets);
    if (blockedBy) this.blockedBy ??= { code: blockedBy.code, message: `In ${what}: ${blockedBy.message}` };
    return blockedBy || changes.length > 0 ? undefined : text;
  }
}

export interface Resolution {
  readonly finding: StoredFinding;
  readonly resolution: 'fixed' | 'outdated';
  readonly note: string | null;
}

/** Selects the open findings that this review resolves. A finding that was found again stays open, even if the agent resolved it. */
export function resolutionsOf(notes: ReviewNotes, open: readonly StoredFinding[]): Resolution[] {
  return open.flatMap((finding) => {
    if (notes.findings.some((each) => isSameFinding(identityOf(each), knownIn(notes, finding)))) return [];
    // The model must not dismiss a published finding: the reviewed text can inject such a request.
    const resolved = notes.resolved.find(
      (each) => each.findingId === finding.findingId && each.resolution !== 'dismissed',
    );
    if (resolved)
      return [{ finding, resolution: resolved.resolution === 'fixed' ? 'fixed' : 'outdated', note: resolved.note }];
    return notes.goneFindings.includes(finding.findingId)
      ? [{ finding, resolution: 'outdated', note: 'Its lines are gone.' }]
      : [];
  });
}
