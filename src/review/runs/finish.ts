import type { ReviewFailure } from '../../../machines/index.ts';
import type { ReviewRunState } from '../../protocol/index.ts';
import type { RunOutcome } from '../git/index.ts';
import { endCheckRun } from './check-run.ts';
import { forgetNotes } from './notes.ts';
import { errorOf, type RunSession } from './session.ts';

/** Final states of the machine that are ends of the run, too. */
export const endStates = ['done', 'failed', 'cancelled', 'superseded'] as const satisfies readonly ReviewRunState[];
export type EndState = (typeof endStates)[number];
export const isEndState = (state: unknown): state is EndState => endStates.some((each) => each === state);

/**
 * Writes down how a run has ended. The run's own row comes last: whoever ends before that leaves it to another process, which
 * does it again.
 */
export async function finish(session: RunSession, state: EndState, failure: ReviewFailure | null): Promise<void> {
  const { context, run } = session;
  if (state === 'done') await keepReviewed(session);
  await endCheckRun(context, run, state);
  await releaseWorktree(session, state === 'done' ? 'succeeded' : 'failed');
  if (state === 'cancelled' || state === 'superseded') await forgetNotes(context.store, run.runId);
  await session.update({ state, nextAttemptAt: null, error: failure && errorOf(failure) });
}

/** Nobody needs it any more: the time for which it is kept begins. */
export async function releaseWorktree({ context, run }: RunSession, outcome: RunOutcome): Promise<void> {
  await context.git.release(run.runId, outcome).catch((error: unknown) => {
    // The clean-up takes what was not released, too.
    context.logger.warn('a worktree could not be released', { runId: run.runId, error });
  });
}

/** The next review looks at what comes after this head. Not when its findings are held back: they would never be told. */
async function keepReviewed({ context, run }: RunSession): Promise<void> {
  const { store } = context;
  const { runId, itemId, headSha, baseSha } = run;
  const draft = await store.draftOfRun(runId);
  if (!draft || draft.blockedBy !== null) return;
  await store.updateItem(itemId, { reviewedHeadSha: headSha, reviewedBaseSha: baseSha });
  await store.publish('item.changed', { itemId });
}
