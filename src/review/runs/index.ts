/**
 * Reviews, from the wish to the last write: what is due, who works on it, what the agent is asked, what of its answer is told.
 * One actor of the `review-run` machine for each run that this process holds the lease of. Called by the backend and its API.
 * Never here: SQL, git's commands, a call to the forge besides reading the pull request, the agent server's protocol.
 */
import { AutoReview } from './auto-review.ts';
import { Dispatcher } from './dispatcher.ts';
import { runLimits } from './limits.ts';
import { peopleActions } from './people.ts';
import { Publication } from './publication.ts';
import type { ReviewRuns, ReviewRunsOptions, RunClock, RunContext } from './types.ts';

export { type EligibilityFacts, type IneligibleCode, ineligibleCodes, whyIneligible } from './eligibility.ts';
export { type RunTimes, runLimits } from './limits.ts';
export type { ReviewRuns, ReviewRunsOptions, ReviewWish, RunClock, RunSource } from './types.ts';

const realClock: RunClock = {
  now: () => Date.now(),
  setTimeout: (body, ms) => setTimeout(body, ms),
  clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
};

/** The runs of one process. Nothing happens before `start`; what people ask for is taken at any time. */
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
        context.logger.warn('drafts under way could not be taken up', { error });
      });
    },
    stop: () => dispatcher.stop(),
    get active() {
      return dispatcher.active;
    },
    ...peopleActions(context, publication, dispatcher),
    settleWrite: (write) => publication.settle(write),
    tick: () => automatic.tick(),
  };
}
