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
  /** Published and not resolved. */
  readonly open: readonly StoredFinding[];
  /** Dismissed by a user, or skipped in a published draft; not published again either. */
  readonly unwanted: readonly StoredFinding[];
  /** Texts that must not be published. */
  readonly secrets: readonly string[];
}

type Noted = ReviewNotes['findings'][number];

/** Composes a draft from the submission of the agent, without repeated findings, minor ones and secrets. Pure. */
export function compose(notes: ReviewNotes, facts: ComposeFacts): Composition {
  const earlier = [...facts.open, ...facts.unwanted];
  const findings: Noted[] = [];
  for (const each of bySeverity(notes.findings)) {
    const isSmall = severityRank[each.finding.severity] > severityRank[notes.minSeverity];
    const identity = identityOf(each);
    const isKnown = [...earlier, ...findings.map(identityOf)].some((known) => repeats(identity, known));
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
  totalFiles === 0 ? 'Nothing has changed.' : 'The settings exclude all changed files from review.';

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
    // Unchanged, because it identifies the finding. It is never published.
    ...(oldText !== undefined && { oldText }),
    ...(isSuggestion && { newText: replaces }),
    placement: isWithin ? anchor.placement : 'summary',
    fingerprint,
    status: 'accepted',
    isResolved: false,
    isPublished: false,
    warnings: isWithin ? [] : ['Listed in the summary: the review exceeds MaxFindings.'],
    commentId: null,
    threadNodeId: null,
    url: null,
  };
}

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
    return '(Withheld: it seems to contain a secret.)';
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
    if (notes.findings.some((each) => repeats(identityOf(each), finding))) return [];
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
