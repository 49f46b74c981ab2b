import type { ReviewRunState } from '../../protocol/index.ts';
import type { StoredDraft, StoredRepository, StoredRun } from '../store/index.ts';
import { putWrite } from './outbox.ts';
import type { RunContext } from './types.ts';

type Ended = Extract<ReviewRunState, 'done' | 'failed' | 'cancelled' | 'superseded'>;
interface Conclusion {
  readonly conclusion: 'success' | 'neutral' | 'cancelled' | 'skipped';
  readonly title: string;
}
type Concludes = (run: StoredRun, draft: StoredDraft | undefined) => Conclusion;

const counted = (count: number): string => (count === 1 ? '1 finding' : `${count} findings`);

/** Never `failure`, because a required check with that conclusion would block the merge. */
const conclusions: Readonly<Record<Ended, Concludes>> = {
  done: (_, draft) => {
    const found = draft?.findings.filter(({ status }) => status === 'accepted').length ?? 0;
    return found === 0
      ? { conclusion: 'success', title: 'No new findings' }
      : {
          conclusion: 'neutral',
          title: draft?.status === 'published' ? counted(found) : `${counted(found)} in a draft`,
        };
  },
  failed: () => ({ conclusion: 'neutral', title: 'The review failed' }),
  cancelled: () => ({ conclusion: 'cancelled', title: 'The review was cancelled' }),
  superseded: () => ({ conclusion: 'skipped', title: 'A newer head is reviewed instead' }),
};
const isEnded = (state: ReviewRunState): state is Ended => Object.hasOwn(conclusions, state);

type Repository = Pick<StoredRepository, 'repositoryKey' | 'owner' | 'name'>;
const keyOf = (runId: string, status: 'in_progress' | 'completed'): string => `check:${runId}:${status}`;

/** Creates a check run in progress, if writes and check runs are enabled. */
export async function beginCheckRun(context: RunContext, repository: Repository, run: StoredRun): Promise<void> {
  const { GitHub, Review } = context.settings();
  if (!GitHub.WritesEnabled || !Review.CheckRun) return;
  const { runId, headSha, number } = run;
  await putWrite(
    context,
    { repository, number },
    {
      kind: 'checkRun',
      dedupeKey: keyOf(runId, 'in_progress'),
      request: { headSha, externalId: runId, status: 'in_progress', title: 'Reviewing', summary: '' },
    },
    runId,
  );
}

/** Completes the check run of `beginCheckRun`, if there is one. */
export async function endCheckRun(context: RunContext, run: StoredRun, state = run.state): Promise<void> {
  const { store } = context;
  if (!isEnded(state)) return;
  const { runId, number, repositoryKey } = run;
  const { rows } = await store.writes({ runId, limit: 1_000 });
  const begun = rows.find(({ dedupeKey }) => dedupeKey === keyOf(runId, 'in_progress'));
  const repository = begun && (await store.repository(repositoryKey));
  if (!repository) return;
  const draft = await store.draftOfRun(runId);
  const { conclusion, title } = conclusions[state](run, draft);
  const summary = draft ? `Reviewed ${draft.reviewedFiles} of ${draft.totalFiles} changed files.` : title;
  await putWrite(
    context,
    { repository, number },
    {
      kind: 'checkRun',
      dedupeKey: keyOf(runId, 'completed'),
      request: {
        headSha: begun.request['headSha'],
        ...{ externalId: runId, status: 'completed', conclusion, title, summary },
      },
    },
    runId,
  );
}

const recentRuns = 10;
/** Completes the check runs of runs that the store ended: superseded or cancelled ones. */
export async function endLeftCheckRuns(context: RunContext, itemId: string): Promise<void> {
  const { rows } = await context.store.runs({ itemId, limit: recentRuns });
  for (const run of rows) if (run.startedAt !== null) await endCheckRun(context, run);
}
