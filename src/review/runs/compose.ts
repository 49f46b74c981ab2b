import { type FindingIdentity, repeats, scanCode, scanOutput } from '../anchors/index.ts';
import { type StoredFinding, severityRank } from '../store/index.ts';
import type { ReviewNotes } from './notes.ts';

export interface Composition {
  readonly summary: string;
  readonly findings: readonly StoredFinding[];
  readonly warnings: readonly string[];
  readonly blockedBy: { readonly code: string; readonly message: string } | null;
}

export interface ComposeFacts {
  readonly itemId: string;
  readonly draftId: string;
  /** Told and open. */
  readonly open: readonly StoredFinding[];
  /** Told before, or shown to a person, who did not want it: not told again either. */
  readonly unwanted: readonly StoredFinding[];
  /** What must never leave. */
  readonly secrets: readonly string[];
}

type Noted = ReviewNotes['findings'][number];

/** From what the agent handed in to what may be told: nothing twice, nothing small, nothing that must not leave. Pure. */
export function compose(notes: ReviewNotes, facts: ComposeFacts): Composition {
  const told = [...facts.open, ...facts.unwanted];
  const findings: Noted[] = [];
  for (const each of bySeverity(notes.findings)) {
    const isSmall = severityRank[each.finding.severity] > severityRank[notes.minSeverity];
    const identity = identityOf(each);
    const isKnown = [...told, ...findings.map(identityOf)].some((known) => repeats(identity, known));
    if (!isSmall && !isKnown) findings.push(each);
  }
  const scan = new Scan(facts.secrets);
  return {
    summary: scan.text(notes.isNothing ? nothingText(notes) : notes.summary, 'the summary'),
    findings: findings.map((each, index) => stored(each, index < notes.maxFindings, facts, scan)),
    warnings: notes.warnings,
    blockedBy: scan.blockedBy,
  };
}

const identityOf = ({ finding: { path, title, oldText }, oldPath }: Noted): FindingIdentity => ({
  ...{ path, title, oldText },
  ...(oldPath !== undefined && { oldPath }),
});

const nothingText = ({ totalFiles }: ReviewNotes): string =>
  totalFiles === 0 ? 'Nothing has changed.' : 'None of the changed files is one that is reviewed.';

const bySeverity = (findings: readonly Noted[]): readonly Noted[] =>
  [...findings].sort((a, b) => severityRank[a.finding.severity] - severityRank[b.finding.severity]);

function stored(noted: Noted, isWithin: boolean, { itemId, draftId }: ComposeFacts, scan: Scan): StoredFinding {
  const { findingId, finding, anchor, fingerprint } = noted;
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
    // Kept as it is: by it the finding is known again. It is never told.
    ...(oldText !== undefined && { oldText }),
    ...(isSuggestion && { newText: replaces }),
    placement: isWithin ? anchor.placement : 'summary',
    fingerprint,
    status: 'accepted',
    isResolved: false,
    isPublished: false,
    warnings: isWithin ? [] : ['More findings than one review tells at their place: listed in the summary.'],
    commentId: null,
    threadNodeId: null,
    url: null,
  };
}

/** Cleans texts, and remembers why they may not leave. */
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
    return '(Withheld: it seems to contain a secret.)';
  }

  /** Code is not changed: what would have to be is not suggested. */
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

/** Which open findings this review closes. One that was found again stays open, whatever else was said of it. */
export function resolutionsOf(notes: ReviewNotes, open: readonly StoredFinding[]): Resolution[] {
  return open.flatMap((finding) => {
    if (notes.findings.some((each) => repeats(identityOf(each), finding))) return [];
    // A model does not dismiss what was told: the text it reads may talk it into that.
    const said = notes.resolved.find((each) => each.findingId === finding.findingId && each.resolution !== 'dismissed');
    if (said) return [{ finding, resolution: said.resolution === 'fixed' ? 'fixed' : 'outdated', note: said.note }];
    return notes.goneFindings.includes(finding.findingId)
      ? [{ finding, resolution: 'outdated', note: 'Its lines are gone.' }]
      : [];
  });
}
