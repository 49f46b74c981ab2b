import type { ReviewDraft, ReviewItem, ReviewRun } from '../../../protocol/index.ts';
import { draftLooks, isActive, isOpenDraft, lookOfRun, type StatusLabel } from '../review/words.ts';

/** Filters of the rows of the queue. */
export const standings = ['working', 'decide', 'failed', 'done'] as const;
export type Standing = (typeof standings)[number] | 'rest';
export const standingWords: Readonly<Record<(typeof standings)[number], string>> = {
  working: 'Waiting or running',
  decide: 'To decide',
  failed: 'Failed',
  done: 'Reviewed',
};

/** A pull request with the result of its reviews. */
export interface QueueRow {
  readonly item: ReviewItem;
  /** Run that is active or waiting, else the last run. */
  readonly run: ReviewRun | undefined;
  /** The draft that needs a decision. */
  readonly draft: ReviewDraft | undefined;
  readonly standing: Standing;
  readonly look: StatusLabel;
}

const never: StatusLabel = { word: 'Not reviewed', tone: 'neutral', shape: 'ring' };
const reviewed: StatusLabel = { word: 'Reviewed', tone: 'ok', shape: 'disc' };
const behind: StatusLabel = { word: 'New commits', tone: 'neutral', shape: 'diamond' };
const paused: StatusLabel = { word: 'Paused', tone: 'neutral', shape: 'square' };

function stand(item: ReviewItem, run: ReviewRun | undefined, draft: ReviewDraft | undefined): [Standing, StatusLabel] {
  if (run && isActive(run)) return ['working', lookOfRun(run.state)];
  if (run?.state === 'failed') return ['failed', lookOfRun(run.state)];
  if (draft) return ['decide', draftLooks[draft.status]];
  if (item.isPaused) return ['rest', paused];
  if (item.reviewedHeadSha === item.headSha) return ['done', reviewed];
  if (item.reviewedHeadSha !== undefined) return ['rest', behind];
  return ['rest', run ? lookOfRun(run.state) : never];
}

/**
 * Joins the lists. An active run goes before a failed one, and a failed run before a draft that needs a decision.
 *
 * @param runs newest first
 */
export function rowsOf(
  items: readonly ReviewItem[],
  runs: readonly ReviewRun[],
  drafts: readonly ReviewDraft[],
): QueueRow[] {
  const runsOf = Map.groupBy(runs, ({ itemId }) => itemId);
  const draftOf = new Map(drafts.filter(isOpenDraft).map((draft) => [draft.itemId, draft]));
  return items.map((item) => {
    const own = runsOf.get(item.itemId) ?? [];
    const run = own.find(({ runId }) => runId === item.activeRunId) ?? own.find(isActive) ?? own[0];
    const draft = draftOf.get(item.itemId);
    const [standing, look] = stand(item, run, draft);
    return { item, run, draft, standing, look };
  });
}
