import type { ReviewFailure } from '../../../machines/index.ts';
import type { ReviewRunState } from '../../protocol/index.ts';
import type { RunOutcome } from '../git/index.ts';
import { endCheckRun } from './check-run.ts';
import { deleteNotes } from './notes.ts';
import { errorOf, type RunSession } from './session.ts';

/** Final states of the machine that end the run, too. */
export const endStates = ['done', 'failed', 'cancelled', 'superseded'] as const satisfies readonly ReviewRunState[];
export type EndState = (typeof endStates)[number];
export const isEndState = (state: unknown): state is EndState => endStates.some((each) => each === state);

/**
 * Saves the end of a run. The row of the run is written last: if this process ends before, another one repeats all of it.
 * @throws LeaseLostError
 */
export async function finish(session: RunSession, state: EndState, failure: ReviewFailure | null): Promise<void> {
  const { context, run } = session;
  if (state === 'done') await saveReviewedHead(session);
  await endCheckRun(context, run, state);
  await releaseWorktree(session, state === 'done' ? 'succeeded' : 'failed');
  if (state === 'cancelled' || state === 'superseded') await deleteNotes(context.store, run.runId);
  await session.update({ state, nextAttemptAt: null, error: failure && errorOf(failure) });
}

/** Releases the worktree of a run, which starts its retention time. Failures are logged. */
export async function releaseWorktree({ context, run }: RunSession, outcome: RunOutcome): Promise<void> {
  await context.git.release(run.runId, outcome).catch((error: unknown) => {
    context.logger.warn('could not release a worktree; the clean-up removes it', { runId: run.runId, error });
  });
}

/**
 * Saves the reviewed head: the next incremental review starts after it. A blocked draft does not count, because its findings would
 * never be published.
 */
async function saveReviewedHead({ context, run }: RunSession): Promise<void> {
  const { store } = context;
  const { runId, itemId, headSha, baseSha } = run;
  const draft = await store.draftOfRun(runId);
  if (!draft || draft.blockedBy !== null) return;
  await store.updateItem(itemId, { reviewedHeadSha: headSha, reviewedBaseSha: baseSha });
  await store.publish('item.changed', { itemId });
}
