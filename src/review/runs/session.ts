import type { ReviewFailure } from '../../../machines/index.ts';
import type { ReviewRunState } from '../../protocol/index.ts';
import type { DiffFile, Selection } from '../anchors/index.ts';
import type { PreparedReview } from '../git/index.ts';
import type { Lease, RunChange, StoredItem, StoredRun } from '../store/index.ts';
import { LeaseLostError, retryLevel } from '../store/index.ts';
import type { BaseRules } from './base-rules.ts';
import type { RunContext } from './types.ts';

/** Result of `prepare` for the review, which follows in the same process. */
export interface Preparation {
  readonly item: StoredItem;
  readonly workspacePath: string;
  readonly prepared: PreparedReview;
  readonly diffFiles: readonly DiffFile[];
  readonly selection: Selection;
  readonly rules: BaseRules;
}

/** One run leased by this process. All changes of the run's row go through it, under the lease. */
export class RunSession {
  readonly context: RunContext;
  run: StoredRun;
  lease: Lease;
  preparation: Preparation | undefined;
  /** Start of the agent's turn and time of its last activity; null without a turn. */
  turn: { readonly startedAt: number; lastActivityAt: number } | null = null;
  /** Checks the lease and the request to cancel at once; `watch` provides it. */
  checkNow: () => void = () => {};
  readonly #steps = new Set<Promise<unknown>>();
  #entered: Promise<void> = Promise.resolve();
  #published: Promise<unknown> = Promise.resolve();

  constructor(context: RunContext, run: StoredRun, lease: Lease) {
    this.context = context;
    this.run = run;
    this.lease = lease;
  }

  /** Changes the run and publishes the change. @throws LeaseLostError */
  async update(change: RunChange): Promise<void> {
    const { store } = this.context;
    const { runId, itemId } = this.run;
    this.run = await store.updateRun(runId, this.lease, change);
    this.#publish({ runId, itemId, state: this.run.state });
  }

  /** Publishes events in order; the run does not wait for them. */
  #publish(change: Readonly<Record<string, unknown>>): void {
    const { store, logger } = this.context;
    this.#published = this.#published
      .then(() => store.publish('run.changed', change))
      .catch((error: unknown) =>
        logger[retryLevel(error)]('could not publish an event of a review run; reload the page', { error }),
      );
  }

  /** Saves a state that the machine has entered: users see it, and another process can resume at it. Steps wait for it. */
  enter(state: ReviewRunState): void {
    this.#entered = this.#entered
      .catch(() => {})
      .then(async () => {
        if (this.run.state !== state) await this.update({ state });
      });
    // `entered` passes the failure on.
    this.#entered.catch(() => {});
  }

  /** Resolves when the current state of the machine is saved. @throws LeaseLostError */
  async entered(): Promise<void> {
    // An actor starts the work of a state before it reports the state.
    await Promise.resolve();
    await this.#entered;
  }

  /** Renews the lease. @returns whether cancellation was requested @throws LeaseLostError */
  async renew(): Promise<boolean> {
    const { store, times } = this.context;
    const { lease, isCancelRequested } = await store.renewRun(this.run.runId, this.lease, times.leaseMs);
    this.lease = lease;
    return isCancelRequested;
  }

  /** Returns the run to the queue. @param failure counts as an attempt @param pauseMs before the next attempt */
  async returnToQueue(failure: ReviewFailure | null, pauseMs: number): Promise<void> {
    const { store } = this.context;
    const { runId, attempt, state, itemId } = this.run;
    if (failure) {
      const isPublishing = state === 'publishing';
      const { MaxRunAttempts } = this.context.settings().AgentServer;
      // An outage does not use up the last attempt, which runs when the dependency is available again.
      const isKept = failure.isOutage === true && attempt >= MaxRunAttempts;
      await this.update({
        attempt: isKept ? attempt : attempt + 1,
        error: errorOf(failure),
        ...(!isPublishing && { state: 'backingOff' }),
      });
    }
    const nextAttemptAt = pauseMs > 0 ? (await store.now()) + pauseMs : null;
    await store.releaseRun(runId, this.lease, nextAttemptAt);
    this.#publish({ runId, itemId });
    await this.#published;
  }

  /** Runs the work of a state once the state is saved. `idle` waits for it, also after the machine has left the state. */
  step<T>(body: () => Promise<T>, onLost: () => void): Promise<T> {
    const step = this.entered()
      .then(body)
      .catch((error: unknown) => {
        if (error instanceof LeaseLostError) onLost();
        throw error;
      });
    this.#steps.add(step);
    const remove = () => this.#steps.delete(step);
    step.then(remove, remove);
    return step;
  }

  /** Resolves when all steps have ended and their events are published, at most after `stopMs`. */
  async idle(): Promise<void> {
    const { clock, times } = this.context;
    await new Promise<void>((resolve) => {
      const late = clock.setTimeout(resolve, times.stopMs);
      void Promise.allSettled([...this.#steps, this.#entered, this.#published]).then(() => {
        clock.clearTimeout(late);
        resolve();
      });
    });
  }
}

/** Stored form of a failure: short, on one line. */
export const errorOf = ({ code, message }: Pick<ReviewFailure, 'code' | 'message'>) => ({
  code,
  message: message.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, 500),
});
