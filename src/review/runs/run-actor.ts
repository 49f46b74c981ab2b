import { type Actor, createActor, fromCallback, fromPromise, type InspectionEvent, type SnapshotFrom } from 'xstate';
import {
  type ReviewFailure,
  type ReviewResume,
  type ReviewRunEvent,
  type ReviewRunKey,
  reviewRunMachine,
} from '../../../machines/index.ts';
import { exponentialBackoffMs, jitters } from '../../lib/index.ts';
import type { ReviewRunState } from '../../protocol/index.ts';
import { LeaseLostError, retryLevel, type StoredRun } from '../store/index.ts';
import { draft } from './draft.ts';
import { releaseWorktree } from './finish.ts';
import { readNotes } from './notes.ts';
import { markOutage } from './outage.ts';
import { prepareRun } from './prepare-run.ts';
import type { Publication } from './publication.ts';
import { publishRun } from './publish.ts';
import { placeOf } from './queue.ts';
import { review } from './review.ts';
import type { RunSession } from './session.ts';
import type { RunContext } from './types.ts';

export type ReviewRunActor = Actor<typeof reviewRunMachine>;

/** Returns the step at which a leased run resumes. A stored submission is not requested from the agent again. */
export async function resumeOf({ store }: RunContext, run: StoredRun): Promise<ReviewResume> {
  const draft = await store.draftOfRun(run.runId);
  if (run.state === 'publishing' || draft?.status === 'publishing') return 'publishing';
  return draft || (await readNotes(store, run)) ? 'drafting' : 'preparing';
}

/** Creates the actor of one run, with the effects of the machine. Not started. */
export function runActor(session: RunSession, publication: Publication, resumeAt: ReviewResume): ReviewRunActor {
  const { context, run } = session;
  const { clock, inspect, settings } = context;
  const { runId, attempt, isCancelRequested, repositoryKey, number } = run;
  const id = `review-run:${runId}`;
  // Without the instance: `owner/name#12`.
  const pull = `${repositoryKey.replace(/^[^/]*\//, '')}#${number}`;
  const step = <T>(body: (signal: AbortSignal) => Promise<T>) =>
    fromPromise<T, ReviewRunKey>(({ signal }) =>
      session
        .step(() => {
          signal.throwIfAborted();
          return body(signal);
        }, lost)
        .catch(async (error: unknown) => {
          throw await markOutage(session, error);
        }),
    );
  const actor: ReviewRunActor = createActor(
    reviewRunMachine.provide({
      actors: {
        prepare: step((signal) => prepareRun(session, signal)),
        review: step((signal) => review(session, signal)),
        draft: step(() => draft(session)),
        publish: step((signal) => publishRun(session, publication, signal)),
        interrupt: fromPromise<void, ReviewRunKey & { readonly why: 'cancelled' | 'tooLong' }>(({ input }) =>
          interrupt(session, input.why),
        ),
        returnToQueue: fromPromise<void, ReviewRunKey & { readonly failure: ReviewFailure | null }>(({ input }) =>
          session.step(() => returnToQueue(session, input.failure), lost),
        ),
        watch: fromCallback<ReviewRunEvent, ReviewRunKey>(({ sendBack }) => watch(session, sendBack)),
      },
    }),
    {
      id,
      systemId: id,
      clock,
      ...(inspect && { inspect: (event: InspectionEvent) => inspect(event, pull) }),
      input: {
        ...{ runId, resumeAt, attempt, isCancelRequested },
        maxAttempts: settings().AgentServer.MaxRunAttempts,
      },
    },
  );
  const lost = () => actor.send({ type: 'LEASE.LOST' });
  actor.subscribe(({ value }) => save(session, value));
  return actor;
}

type MachineState = SnapshotFrom<typeof reviewRunMachine>['value'];
/**
 * State to save for each working state of the machine. `returnToQueue` and `finish` save the other states, together with the
 * attempt or the result.
 */
const savedAs: Readonly<Partial<Record<MachineState, ReviewRunState>>> = {
  preparing: 'preparing',
  reviewing: 'reviewing',
  interrupting: 'reviewing',
  drafting: 'drafting',
  publishing: 'publishing',
  cancelling: 'cancelling',
};

/** Saves the state after each transition. */
function save(session: RunSession, state: MachineState): void {
  const saved = savedAs[state];
  if (saved) session.enter(saved);
}

/** Ends the agent's turn: waits until the step that runs it has ended, then interrupts the turn, which another process may have begun. */
async function interrupt(session: RunSession, why: 'cancelled' | 'tooLong'): Promise<void> {
  const { context } = session;
  await session.entered();
  await session.idle();
  const { runId, threadId, repositoryKey } = session.run;
  const { configured } = await placeOf(context, repositoryKey);
  if (threadId === null || configured?.workspacePath === undefined) return;
  context.logger.info('interrupting the turn of a review run', { runId, threadId, why });
  await context.agent.interrupt(configured.workspacePath, threadId);
}

/** Returns a run to the queue. The next attempt makes its own worktree, maybe on another host; a publishing run needs none. */
async function returnToQueue(session: RunSession, failure: ReviewFailure | null): Promise<void> {
  if (failure && session.run.state !== 'publishing') await releaseWorktree(session, 'failed');
  await session.returnToQueue(failure, pauseOf(session, failure));
}

/** Returns the pause before the next attempt, in milliseconds. @param failure null: the run waits for its writes */
export function pauseOf(
  { context, run }: Pick<RunSession, 'context' | 'run'>,
  failure: Pick<ReviewFailure, 'retryAfterMs' | 'isOutage'> | null,
): number {
  if (!failure) return context.times.writesPauseMs;
  const { RetryBackoffSeconds, MaxRetryBackoffSeconds, MaxRunAttempts } = context.settings().AgentServer;
  const isLate = failure.isOutage === true && run.attempt >= MaxRunAttempts;
  const capMs = MaxRetryBackoffSeconds * 1_000;
  const firstMs = isLate ? capMs : RetryBackoffSeconds * 1_000;
  const pauseMs = exponentialBackoffMs(run.attempt - 1, { firstMs, capMs, jitter: jitters.none }, 0);
  return Math.max(pauseMs, failure.retryAfterMs ?? 0);
}

/** Renews the lease and checks the deadlines every `watchMs`. @returns stops it */
function watch(session: RunSession, send: (event: ReviewRunEvent) => void): () => void {
  const { context } = session;
  const { clock, times, logger } = context;
  let timer: unknown;
  let isOver = false;
  const check = async () => {
    try {
      if (await session.renew()) send({ type: 'CANCEL' });
    } catch (error) {
      if (error instanceof LeaseLostError) return send({ type: 'LEASE.LOST' });
      // The database may recover before the lease expires; until then nothing can be written anyway.
      logger[retryLevel(error)]('could not renew the lease of a review run; retrying', {
        runId: session.run.runId,
        error,
      });
    }
    if (isOver) return;
    for (const type of lateEvents(session)) send({ type });
    clock.clearTimeout(timer);
    timer = clock.setTimeout(check, times.watchMs);
  };
  session.checkNow = () => void check();
  timer = clock.setTimeout(check, times.watchMs);
  return () => {
    isOver = true;
    session.checkNow = () => {};
    clock.clearTimeout(timer);
  };
}

function lateEvents({ context, turn }: RunSession): ('STALLED' | 'DEADLINE')[] {
  if (!turn) return [];
  const { StallTimeoutSeconds, RunTimeoutSeconds } = context.settings().AgentServer;
  const now = context.clock.now();
  const late = (since: number, seconds: number) => now - since >= seconds * 1_000;
  return [
    ...(late(turn.startedAt, RunTimeoutSeconds) ? (['DEADLINE'] as const) : []),
    ...(late(turn.lastActivityAt, StallTimeoutSeconds) ? (['STALLED'] as const) : []),
  ];
}
