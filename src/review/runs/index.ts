/**
 * Executes review runs from the trigger to the last write: queues due reviews, leases runs, prepares each, asks the agent, composes a
 * draft and publishes it. Each run leased by this process is one actor of the `review-run` machine. `backend` and `api` call it.
 * SQL, git commands, the protocol of the agent server and calls to the source, except for reading a pull request, belong to other parts.
 */
import { AutoReview } from './auto-review.ts';
import { Dispatcher } from './dispatcher.ts';
import { runLimits } from './limits.ts';
import { Publication } from './publication.ts';
import type { ReviewRuns, ReviewRunsOptions, RunClock, RunContext } from './types.ts';
import { userActions } from './user-actions.ts';

export { type EligibilityFacts, type IneligibleCode, ineligibleCodes, whyIneligible } from './eligibility.ts';
export { type RunTimes, runLimits } from './limits.ts';
export type { ReviewRequest, ReviewRuns, ReviewRunsOptions, RunClock, RunSource } from './types.ts';

const realClock: RunClock = {
  now: () => Date.now(),
  setTimeout: (body, ms) => setTimeout(body, ms),
  clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
};

/** Creates the review runs of one process. Runs are leased after `start`; requests of users are accepted at any time. */
export function createReviewRuns(options: ReviewRunsOptions): ReviewRuns {
  const { clock = realClock, times, ...rest } = options;
  const context: RunContext = { ...rest, clock, times: { ...runLimits, ...times } };
  const publication = new Publication(context);
  const dispatcher = new Dispatcher(context, publication);
  const automatic = new AutoReview(context);
  return {
    start() {
      dispatcher.start();
      publication.resume().catch((error: unknown) => {
        context.logger.warn('could not resume the publication of drafts; publish them on the page', { error });
      });
    },
    stop: () => dispatcher.stop(),
    get active() {
      return dispatcher.active;
    },
    get idleMs() {
      return dispatcher.idleMs;
    },
    ...userActions(context, publication, dispatcher),
    settleWrite: (write) => publication.settle(write),
    tick: () => automatic.tick(),
  };
}
