import {
  type Anchor,
  type RenderedFinding,
  renderComment,
  renderSummary,
  replacementFor,
  scanCode,
  scanOutput,
  withoutLineEnd,
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
  /** Number of failed publications of the draft before; it makes the dedupe keys of the new writes differ. */
  readonly round: number;
}
export interface Plan {
  readonly writes: readonly PlannedWrite[];
  readonly resolutions: readonly Resolution[];
  /** Parts of the draft that the source does not show. */
  readonly warnings: readonly string[];
}

/** Plans the writes of a draft. The write that decides its status comes last: when it is in the outbox, so are all others. */
export function planOf(facts: PlanFacts): Plan {
  const { draft, notes, item, open } = facts;
  const accepted = draft.findings.filter(({ status }) => status === 'accepted');
  const resolutions = notes ? resolutionsOf(notes, open) : [];
  const { number } = item;
  const suffix = facts.round === 0 ? '' : `#${facts.round}`;
  const withRound = ({ dedupeKey, ...write }: PlannedWrite) => ({ ...write, dedupeKey: dedupeKey + suffix });
  const summary = summaryWrite(facts, accepted, resolutions);
  const isQuiet = facts.isQuietWhenClean && accepted.length === 0 && item.summaryCommentId === null;
  const writes = [
    // A finding published in the summary has no thread.
    ...resolutions.flatMap(({ finding }) => (finding.commentId === null ? [] : resolveWrite(finding, number))),
    ...accepted.filter(({ placement }) => placement === 'file').map((each) => withRound(fileComment(each, facts))),
    ...(isQuiet ? [] : [withRound(summary.write)]),
    ...(accepted.length > 0 ? [withRound(reviewWrite(facts, accepted))] : []),
  ];
  const warnings = [
    ...(summary.unlisted > 0 ? [`The summary has no room for ${counted(summary.unlisted)}.`] : []),
    ...accepted.filter((each) => isUnsuggested(each, notes)).map(({ path }) => `${path}: ${unsuggestedText}`),
  ];
  return { writes, resolutions, warnings };
}

const counted = (count: number): string => (count === 1 ? '1 finding' : `${count} findings`);
const unsuggestedText = 'The change cannot replace the lines of the file and is published as a comment only.';

/** Dedupe key without the number of the round. */
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
): { readonly write: PlannedWrite; readonly unlisted: number } {
  const { itemId, number } = item;
  const listed = accepted.filter(({ placement }) => placement === 'summary');
  const resolved = new Set(resolutions.map(({ finding }) => finding.findingId));
  const earlier = open.filter(({ draftId, findingId }) => draftId !== draft.draftId && !resolved.has(findingId));
  const { body, unlisted } = renderSummary({
    itemId,
    headSha: draft.headSha,
    summary: draft.summary,
    inline: accepted.length - listed.length,
    listed: listed.map((each) => rendered(each, undefined)),
    earlier: earlier.filter(({ placement }) => placement === 'summary').map((each) => rendered(each, undefined)),
    stillOpen: earlier.length,
    resolved: resolutions.length,
    reviewedFiles: draft.reviewedFiles,
    totalFiles: draft.totalFiles,
    // The stored reasons are those of `selectFiles`.
    skipped: draft.skippedFiles as Parameters<typeof renderSummary>[0]['skipped'],
    sinceSha: notes?.sinceSha ?? null,
  });
  return {
    write: { kind: 'summary', dedupeKey: `summary:${draft.draftId}`, request: { number, itemId, body } },
    unlisted,
  };
}

const withoutLine = (count: number): string =>
  `${counted(count)} ${count === 1 ? 'has' : 'have'} no line in the diff: see the summary.`;

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

/** Whole lines that replace those of the finding, with the user's edits of the agent's text. */
function replacementOf(
  { kind, findingId, newText }: StoredFinding,
  notes: ReviewNotes | undefined,
): string | undefined {
  const noted = notes?.findings.find((each) => each.findingId === findingId);
  if (kind !== 'suggestion' || newText === undefined || noted?.anchor.placement !== 'inline') return undefined;
  const { replacement, quoted } = noted.anchor;
  if (replacement === undefined || noted.finding.newText === newText) return replacement;
  return quoted ? (replacementFor(quoted, withoutLineEnd(newText)) ?? undefined) : newText;
}

/** True for a suggestion whose edited text cannot replace the lines of the file. */
const isUnsuggested = (finding: StoredFinding, notes: ReviewNotes | undefined): boolean =>
  finding.kind === 'suggestion' && finding.placement === 'inline' && replacementOf(finding, notes) === undefined;

/** Finds a secret in a draft, after edits of users, too. @returns undefined without one */
export function leakIn(
  { summary, findings }: Pick<StoredDraft, 'summary' | 'findings'>,
  secrets: readonly string[],
): { readonly code: string; readonly message: string } | undefined {
  const accepted = findings.filter(({ status }) => status === 'accepted');
  const scanned = [
    ...[summary, ...accepted.flatMap(({ title, body, path }) => [title, body, path])].map((text) =>
      scanOutput(text, secrets),
    ),
    ...accepted.map(({ newText = '' }) => scanCode(newText, secrets)),
  ];
  return scanned.find(({ blockedBy }) => blockedBy !== null)?.blockedBy ?? undefined;
}

/** Cleans a draft again after edits: users, too, write mentions and paste invisible characters. */
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
