import * as v from 'valibot';
import { DroppedFinding, FindingHunk, findingResolutions, SubmittedFinding } from '../../protocol/index.ts';
import { type SuggestionObstacle, suggestionObstacles } from '../anchors/index.ts';
import { notesFact, type ReviewStore } from '../store/index.ts';

const Lines = v.array(v.string());
const obstacles = Object.keys(suggestionObstacles) as SuggestionObstacle[];

const Anchor = v.variant('placement', [
  v.object({
    placement: v.literal('inline'),
    side: v.picklist(['LEFT', 'RIGHT']),
    line: v.number(),
    startLine: v.exactOptional(v.number()),
    replacement: v.exactOptional(v.string()),
    quoted: v.exactOptional(
      v.object({ lines: v.pipe(Lines, v.readonly()), oldText: v.string(), at: v.exactOptional(v.number()) }),
    ),
  }),
  v.object({
    placement: v.picklist(['file', 'summary']),
    reason: v.picklist(['noText', 'outsideDiff', 'binary', 'deleted']),
  }),
]);

/** Title and severity of a finding, in the words of the agent. */
export const Submitted = v.object({ title: v.string(), severity: SubmittedFinding.entries.severity });

/** Place of a finding of an earlier review in the present head. */
const EarlierPlace = v.object({
  path: v.string(),
  /** Value of `KnownFinding.place`. */
  state: v.picklist(['present', 'gone', 'unknown']),
  line: v.exactOptional(v.number()),
  startLine: v.exactOptional(v.number()),
  neighbours: v.exactOptional(v.object({ before: Lines, after: Lines })),
  /** Value of `KnownFinding.submitted`. */
  submitted: v.exactOptional(Submitted),
});
export type EarlierPlace = v.InferOutput<typeof EarlierPlace>;

/**
 * Result of the agent's turn with all facts that drafting and publishing need. Stored until the draft is published or discarded, so
 * that no process asks the agent twice.
 */
export const ReviewNotes = v.object({
  headSha: v.string(),
  baseSha: v.string(),
  /** Null after a full review. */
  sinceSha: v.nullable(v.string()),
  summary: v.string(),
  /** True when no file was selected, so the agent was not asked. */
  isNothing: v.boolean(),
  findings: v.array(
    v.object({
      findingId: v.string(),
      finding: SubmittedFinding,
      anchor: Anchor,
      fingerprint: v.string(),
      oldPath: v.exactOptional(v.string()),
      obstacle: v.exactOptional(v.picklist(obstacles)),
      /** Lines of the diff; scanned for secrets when the draft is made. */
      hunk: v.exactOptional(FindingHunk),
    }),
  ),
  /** Findings of drafts that the agent replaced, or that were refused. */
  withdrawn: v.optional(v.array(DroppedFinding), []),
  resolved: v.array(
    v.object({ findingId: v.string(), resolution: v.picklist(findingResolutions), note: v.nullable(v.string()) }),
  ),
  /** By finding of an earlier review. */
  earlierPlaces: v.optional(v.record(v.string(), EarlierPlace), {}),
  /** Open findings whose text is no longer in the head. */
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

export const saveNotes = (store: Facts, runId: string, notes: ReviewNotes): Promise<void> =>
  store.setFact(notesFact(runId), JSON.stringify(notes));

/** @returns undefined without notes of this head */
export async function readNotes(
  store: Facts,
  { runId, headSha }: { readonly runId: string; readonly headSha: string },
): Promise<ReviewNotes | undefined> {
  const text = await store.fact(notesFact(runId));
  if (text === undefined) return undefined;
  // Notes written by another version that do not match the schema count as missing.
  const { success, output } = v.safeParse(v.pipe(v.string(), v.parseJson(), ReviewNotes), text);
  return success && output.headSha === headSha ? output : undefined;
}

export const deleteNotes = (store: Facts, runId: string): Promise<void> => store.setFact(notesFact(runId), null);
