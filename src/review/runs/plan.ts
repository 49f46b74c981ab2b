import {
  type Anchor,
  type RenderedFinding,
  renderComment,
  renderSummary,
  scanCode,
  scanOutput,
} from '../anchors/index.ts';
import type { StoredDraft, StoredFinding, StoredItem } from '../store/index.ts';
import { type Resolution, resolutionsOf } from './compose.ts';
import type { ReviewNotes } from './notes.ts';
import type { PlannedWrite } from './outbox.ts';

export interface PlanFacts {
  readonly draft: StoredDraft;
  readonly notes: ReviewNotes | undefined;
  readonly item: StoredItem;
  readonly open: readonly StoredFinding[];
  readonly isQuietWhenClean: boolean;
  /** How often it has been tried before and given up: what was refused once is a write of its own. */
  readonly round: number;
}
export interface Plan {
  readonly writes: readonly PlannedWrite[];
  readonly resolutions: readonly Resolution[];
}

/** The write that decides what becomes of the draft comes last: when it is there all others are. */
export function planOf(facts: PlanFacts): Plan {
  const { draft, notes, item, open } = facts;
  const accepted = draft.findings.filter(({ status }) => status === 'accepted');
  const resolutions = notes ? resolutionsOf(notes, open) : [];
  const { number } = item;
  const suffix = facts.round === 0 ? '' : `#${facts.round}`;
  const withRound = ({ dedupeKey, ...write }: PlannedWrite) => ({ ...write, dedupeKey: dedupeKey + suffix });
  const isQuiet = facts.isQuietWhenClean && accepted.length === 0 && item.summaryCommentId === null;
  const writes = [
    // What was told in the summary has no thread.
    ...resolutions.flatMap(({ finding }) => (finding.commentId === null ? [] : resolveWrite(finding, number))),
    ...accepted.filter(({ placement }) => placement === 'file').map((each) => withRound(fileComment(each, facts))),
    ...(isQuiet ? [] : [withRound(summaryWrite(facts, accepted, resolutions))]),
    ...(accepted.length > 0 ? [withRound(reviewWrite(facts, accepted))] : []),
  ];
  return { writes, resolutions };
}

/** The key of a write in whatever round. */
export const plainKey = (dedupeKey: string): string => dedupeKey.split('#', 1)[0] ?? dedupeKey;
export const reviewKey = (draftId: string): string => `review:${draftId}`;

export const resolveWrite = ({ findingId }: StoredFinding, number: number): PlannedWrite => ({
  kind: 'resolveThread',
  dedupeKey: `resolve:${findingId}`,
  request: { number, findingId },
});

function fileComment(finding: StoredFinding, { draft, item }: PlanFacts): PlannedWrite {
  const { findingId, path } = finding;
  const body = renderComment(rendered(finding, undefined));
  const { number } = item;
  return {
    kind: 'fileComment',
    dedupeKey: `comment:${findingId}`,
    request: { number, commitId: draft.headSha, path, body, findingId },
  };
}

function summaryWrite(
  { draft, notes, item, open }: PlanFacts,
  accepted: readonly StoredFinding[],
  resolutions: readonly Resolution[],
): PlannedWrite {
  const { itemId, number } = item;
  const listed = accepted.filter(({ placement }) => placement === 'summary');
  const body = renderSummary({
    itemId,
    headSha: draft.headSha,
    summary: draft.summary,
    inline: accepted.length - listed.length,
    listed: listed.map((each) => rendered(each, undefined)),
    stillOpen: open.filter(({ draftId }) => draftId !== draft.draftId).length - resolutions.length,
    resolved: resolutions.length,
    reviewedFiles: draft.reviewedFiles,
    totalFiles: draft.totalFiles,
    // The reasons that were kept are the ones that were given.
    skipped: draft.skippedFiles as Parameters<typeof renderSummary>[0]['skipped'],
    sinceSha: notes?.sinceSha ?? null,
  });
  return { kind: 'summary', dedupeKey: `summary:${draft.draftId}`, request: { number, itemId, body } };
}

const withoutLine = (count: number): string =>
  `${count === 1 ? '1 finding has' : `${count} findings have`} no line in the diff: see the summary.`;

function reviewWrite({ draft, notes, item }: PlanFacts, accepted: readonly StoredFinding[]): PlannedWrite {
  const inline = accepted.filter(({ placement, line }) => placement === 'inline' && line !== undefined);
  const listed = accepted.filter(({ placement }) => placement === 'summary').length;
  const comments = inline.map((finding) => {
    const { findingId, path, side, line, startLine } = finding;
    const body = renderComment(rendered(finding, notes));
    return { path, body, line, side, ...(startLine !== undefined && { startLine, startSide: side }), findingId };
  });
  const { number } = item;
  const body = listed > 0 ? withoutLine(listed) : '';
  return {
    kind: 'review',
    dedupeKey: reviewKey(draft.draftId),
    request: { number, commitId: draft.headSha, body, comments },
  };
}

function rendered(finding: StoredFinding, notes: ReviewNotes | undefined): RenderedFinding {
  const { findingId, severity, title, body, path } = finding;
  return { findingId, severity, title, body, path, anchor: anchorOf(finding, notes) };
}

function anchorOf(finding: StoredFinding, notes: ReviewNotes | undefined): Anchor {
  const { placement, side, line, startLine } = finding;
  if (placement !== 'inline' || line === undefined)
    return { placement: placement === 'inline' ? 'file' : placement, reason: 'noText' };
  const replacement = replacementOf(finding, notes);
  return {
    ...{ placement, side, line },
    ...(startLine !== undefined && { startLine }),
    ...(replacement !== undefined && { replacement }),
  };
}

/** Whole lines in place of those that the finding is about: a person may have changed what the agent wrote. */
function replacementOf(
  { kind, findingId, newText }: StoredFinding,
  notes: ReviewNotes | undefined,
): string | undefined {
  const noted = notes?.findings.find((each) => each.findingId === findingId);
  if (kind !== 'suggestion' || newText === undefined || noted?.anchor.placement !== 'inline') return undefined;
  const { replacement } = noted.anchor;
  const written = noted.finding.newText;
  if (replacement === undefined || written === undefined) return undefined;
  if (written === newText) return replacement;
  // Of a part of a line the rest stays; where lines were only indented anew the person has written them whole.
  const at = written === '' ? -1 : replacement.indexOf(written);
  return at < 0 ? newText : replacement.slice(0, at) + newText + replacement.slice(at + written.length);
}

/** What of a draft must not leave, also after people have edited it. @returns undefined when all of it may */
export function leakIn(
  { summary, findings }: Pick<StoredDraft, 'summary' | 'findings'>,
  secrets: readonly string[],
): { readonly code: string; readonly message: string } | undefined {
  const told = findings.filter(({ status }) => status === 'accepted');
  const scanned = [
    ...[summary, ...told.flatMap(({ title, body, path }) => [title, body, path])].map((text) =>
      scanOutput(text, secrets),
    ),
    ...told.map(({ newText = '' }) => scanCode(newText, secrets)),
  ];
  return scanned.find(({ blockedBy }) => blockedBy !== null)?.blockedBy ?? undefined;
}

/** Made harmless once more: people write mentions too, and paste what cannot be seen. */
export function cleaned(draft: StoredDraft, secrets: readonly string[]): StoredDraft {
  const clean = (text: string) => scanOutput(text, secrets).text;
  const cleanCode = (text: string) => {
    const scanned = scanCode(text, secrets);
    return scanned.changes.length > 0 ? scanned.text : text;
  };
  return {
    ...draft,
    summary: clean(draft.summary),
    findings: draft.findings.map((each) => ({
      ...each,
      title: clean(each.title).replace(/\s+/g, ' '),
      body: clean(each.body),
      ...(each.newText !== undefined && { newText: cleanCode(each.newText) }),
    })),
  };
}
