import type { ReviewFailure } from '../../../machines/index.ts';
import type { ReviewRunState } from '../../protocol/index.ts';
import type { DiffFile, Selection } from '../anchors/index.ts';
import type { PreparedReview } from '../git/index.ts';
import type { Lease, RunChange, StoredItem, StoredRun } from '../store/index.ts';
import { LeaseLostError } from '../store/index.ts';
import type { BaseRules } from './base-rules.ts';
import type { RunContext } from './types.ts';

/** What `prepare` found, for the review that follows in the same process. */
export interface Preparation {
  readonly item: StoredItem;
  readonly workspacePath: string;
  readonly prepared: PreparedReview;
  readonly diffFiles: readonly DiffFile[];
  readonly selection: Selection;
  readonly rules: BaseRules;
}

/** One run that this process holds the lease of. Everything that is written of it goes through here, under the lease. */
export class RunSession {
  readonly context: RunContext;
  run: StoredRun;
  lease: Lease;
  preparation: Preparation | undefined;
  /** When the agent was heard last, and when its turn began; null while none is under way. */
  turn: { readonly beganAt: number; heardAt: number } | null = null;
  /** Looks at once whether somebody wants it ended; the watch provides it. */
  lookNow: () => void = () => {};
  readonly #steps = new Set<Promise<unknown>>();
  #entered: Promise<void> = Promise.resolve();
  #told: Promise<unknown> = Promise.resolve();

  constructor(context: RunContext, run: StoredRun, lease: Lease) {
    this.context = context;
    this.run = run;
    this.lease = lease;
  }

  /** @throws LeaseLostError */
  async update(change: RunChange): Promise<void> {
    const { store } = this.context;
    const { runId, itemId } = this.run;
    this.run = await store.updateRun(runId, this.lease, change);
    this.#tell({ runId, itemId, state: this.run.state });
  }

  /** Readers of the stream are told in order; the run does not wait until they are. */
  #tell(change: Readonly<Record<string, unknown>>): void {
    const { store, logger } = this.context;
    this.#told = this.#told
      .then(() => store.publish('run.changed', change))
      .catch((error: unknown) => logger.warn('readers of the event stream cannot be told of a run', { error }));
  }

  /** Saves a state that the machine has entered: people see it, and another process goes on from it. Steps wait for it. */
  enter(state: ReviewRunState): void {
    this.#entered = this.#entered
      .catch(() => {})
      .then(async () => {
        if (this.run.state !== state) await this.update({ state });
      });
    // Whatever waits for it sees the failure.
    this.#entered.catch(() => {});
  }

  /** Resolves when the present state of the machine is saved. @throws LeaseLostError */
  async entered(): Promise<void> {
    // An actor starts the work of a state before it reports the state.
    await Promise.resolve();
    await this.#entered;
  }

  /** @returns whether somebody wants it ended @throws LeaseLostError */
  async renew(): Promise<boolean> {
    const { store, times } = this.context;
    const { lease, isCancelRequested } = await store.renewRun(this.run.runId, this.lease, times.leaseMs);
    this.lease = lease;
    return isCancelRequested;
  }

  /** Puts it back into the queue. @param failure counts as an attempt, and is followed by a pause */
  async giveBack(failure: ReviewFailure | null, pauseMs: number): Promise<void> {
    const { store } = this.context;
    const { runId, attempt, state, itemId } = this.run;
    if (failure) {
      const isPublishing = state === 'publishing';
      const { MaxRunAttempts } = this.context.settings().AgentServer;
      // The last attempt stays the last one, and is there to be used when what was away has come back.
      const isKept = failure.isOutage === true && attempt >= MaxRunAttempts;
      await this.update({
        attempt: isKept ? attempt : attempt + 1,
        error: errorOf(failure),
        ...(!isPublishing && { state: 'backingOff' }),
      });
    }
    const nextAttemptAt = pauseMs > 0 ? (await store.now()) + pauseMs : null;
    await store.releaseRun(runId, this.lease, nextAttemptAt);
    this.#tell({ runId, itemId });
    await this.#told;
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
    const forget = () => this.#steps.delete(step);
    step.then(forget, forget);
    return step;
  }

  /** Resolves when every step is over and told, or too late. */
  async idle(): Promise<void> {
    const { clock, times } = this.context;
    await new Promise<void>((resolve) => {
      const late = clock.setTimeout(resolve, times.stopMs);
      void Promise.allSettled([...this.#steps, this.#entered, this.#told]).then(() => {
        clock.clearTimeout(late);
        resolve();
      });
    });
  }
}

/** What is kept of a failure: short, and on one line. */
export const errorOf = ({ code, message }: Pick<ReviewFailure, 'code' | 'message'>) => ({
  code,
  message: message.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, 500),
});
