import * as v from 'valibot';
import { FindingHunk, findingResolutions, SubmittedFinding } from '../../protocol/index.ts';
import { notesFact, type ReviewStore } from '../store/index.ts';

const Anchor = v.variant('placement', [
  v.object({
    placement: v.literal('inline'),
    side: v.picklist(['LEFT', 'RIGHT']),
    line: v.number(),
    startLine: v.exactOptional(v.number()),
    replacement: v.exactOptional(v.string()),
  }),
  v.object({
    placement: v.picklist(['file', 'summary']),
    reason: v.picklist(['noText', 'outsideDiff', 'binary', 'deleted']),
  }),
]);

/**
 * What a review came to, before it is judged: all that drafting and publishing need of it. Kept until the draft is published
 * or discarded, so that no process asks the agent twice.
 */
export const ReviewNotes = v.object({
  headSha: v.string(),
  baseSha: v.string(),
  /** Null: everything was looked at. */
  sinceSha: v.nullable(v.string()),
  summary: v.string(),
  /** In place of a review: why there was nothing to look at. */
  isNothing: v.boolean(),
  findings: v.array(
    v.object({
      findingId: v.string(),
      finding: SubmittedFinding,
      anchor: Anchor,
      fingerprint: v.string(),
      oldPath: v.exactOptional(v.string()),
      /** As the diff has it: looked through for secrets when the draft is made. */
      hunk: v.exactOptional(FindingHunk),
    }),
  ),
  resolved: v.array(
    v.object({ findingId: v.string(), resolution: v.picklist(findingResolutions), note: v.nullable(v.string()) }),
  ),
  /** Open findings whose text is not at the head any more. */
  goneFindings: v.array(v.string()),
  minSeverity: SubmittedFinding.entries.severity,
  maxFindings: v.number(),
  reviewedFiles: v.number(),
  totalFiles: v.number(),
  skippedFiles: v.array(v.object({ path: v.string(), reason: v.string() })),
  warnings: v.array(v.string()),
});
export type ReviewNotes = v.InferOutput<typeof ReviewNotes>;

type Facts = Pick<ReviewStore, 'fact' | 'setFact'>;

export const keepNotes = (store: Facts, runId: string, notes: ReviewNotes): Promise<void> =>
  store.setFact(notesFact(runId), JSON.stringify(notes));

/** @returns undefined when there are none, or none of this head */
export async function readNotes(
  store: Facts,
  { runId, headSha }: { readonly runId: string; readonly headSha: string },
): Promise<ReviewNotes | undefined> {
  const text = await store.fact(notesFact(runId));
  if (text === undefined) return undefined;
  // Notes that another version has written, and that are not understood, are as good as none.
  const { success, output } = v.safeParse(v.pipe(v.string(), v.parseJson(), ReviewNotes), text);
  return success && output.headSha === headSha ? output : undefined;
}

/** They are not needed any more. */
export const forgetNotes = (store: Facts, runId: string): Promise<void> => store.setFact(notesFact(runId), null);
