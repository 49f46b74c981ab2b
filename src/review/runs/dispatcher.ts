import { waitFor } from 'xstate';
import { Pump } from '../../lib/index.ts';
import { type Lease, LeaseLostError, retryLevel, type StoredRun } from '../store/index.ts';
import { finish, isEndState } from './finish.ts';
import type { Publication } from './publication.ts';
import { type ReviewRunActor, resumeOf, runActor } from './run-actor.ts';
import { RunSession } from './session.ts';
import type { RunContext } from './types.ts';

interface Working {
  readonly session: RunSession;
  readonly actor: ReviewRunActor;
  /** Resolves when the actor and its steps have ended. */
  readonly over: Promise<void>;
}

/** Leases runs from the queue and executes each to its end. */
export class Dispatcher {
  readonly #context: RunContext;
  readonly #publication: Publication;
  readonly #working = new Map<string, Working>();
  /** Repositories of the latest runs, oldest first. */
  readonly #affinity = new Set<string>();
  #unsubscribe: () => void = () => {};
  #isOn = false;
  readonly #claims = new Pump(() => this.#claimAll());
  /** Time of the latest successful read of the queue. */
  #claimedAt = performance.now();

  constructor(context: RunContext, publication: Publication) {
    this.#context = context;
    this.#publication = publication;
  }

  get active(): number {
    return this.#working.size;
  }

  /** Time without a successful read of the queue while runs are leased, in milliseconds. */
  get idleMs(): number {
    return this.#isOn ? performance.now() - this.#claimedAt : 0;
  }

  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#claimedAt = performance.now();
    // The store also wakes on a timer, because the end of a lease sends no hint.
    this.#unsubscribe = this.#context.store.onWake((what) => what === 'runs' && void this.#claims.request());
    void this.#claims.request();
  }

  /** Returns all runs to the queue. */
  async stop(): Promise<void> {
    this.#isOn = false;
    this.#unsubscribe();
    await this.#claims.idle();
    await Promise.all([...this.#working.values()].map((working) => this.#returnToQueue(working)));
  }

  /** Checks at once whether the cancellation of a run was requested, instead of at the next renewal of its lease. */
  checkCancellation(runId: string): void {
    this.#working.get(runId)?.session.checkNow();
  }

  async #claimAll(): Promise<void> {
    try {
      while (this.#isOn && (await this.#claim()));
      this.#claimedAt = performance.now();
    } catch (error) {
      // The next wake-up of the store repeats the claim.
      this.#context.logger[retryLevel(error)]('could not take a run from the queue; retrying', { error });
    }
  }

  /** @returns whether a run was leased */
  async #claim(): Promise<boolean> {
    const { store, node, times, settings } = this.#context;
    const { GlobalMaxActiveRuns, MaxActiveRunsPerRepository, MaxActiveRunsPerSource } = settings().AgentServer;
    const limits = {
      global: GlobalMaxActiveRuns,
      perRepository: MaxActiveRunsPerRepository,
      perSource: MaxActiveRunsPerSource,
    };
    const claim = await store.claimRun(node, times.leaseMs, limits, [...this.#affinity]);
    if (!claim) return false;
    await this.#begin(claim.run, claim.lease);
    return true;
  }

  async #begin(run: StoredRun, lease: Lease): Promise<void> {
    const context = this.#context;
    const { runId, repositoryKey } = run;
    this.#remember(repositoryKey);
    const session = new RunSession(context, run, lease);
    const actor = runActor(session, this.#publication, await resumeOf(context, run));
    // This process took its own expired lease again: the earlier actor has not noticed yet.
    const before = this.#working.get(runId);
    if (before) before.actor.send({ type: 'LEASE.LOST' });
    const working: Working = { session, actor, over: this.#follow(session, actor) };
    this.#working.set(runId, working);
    void working.over.then(() => {
      if (this.#working.get(runId) === working) this.#working.delete(runId);
    });
    actor.start();
  }

  #remember(repositoryKey: string): void {
    this.#affinity.delete(repositoryKey);
    this.#affinity.add(repositoryKey);
    const [oldest] = this.#affinity;
    if (oldest !== undefined && this.#affinity.size > this.#context.times.affinity) this.#affinity.delete(oldest);
  }

  async #follow(session: RunSession, actor: ReviewRunActor): Promise<void> {
    const { logger } = this.#context;
    const { runId } = session.run;
    try {
      const snapshot = await waitFor(actor, ({ status }) => status === 'done', { timeout: Number.POSITIVE_INFINITY });
      const { value, context } = snapshot;
      if (isEndState(value)) await finish(session, value, context.failure);
      await session.idle();
      if (value === 'failed')
        logger.warn('a review run failed', {
          runId,
          deliveryId: session.run.deliveryId,
          code: context.failure?.code,
          message: context.failure?.message,
        });
    } catch (error) {
      const isLost = error instanceof LeaseLostError || !this.#isOn;
      // The lease expires, and another process resumes the run.
      if (!isLost) logger.bug(error, { runId });
    }
  }

  async #returnToQueue({ session, actor, over }: Working): Promise<void> {
    const { logger } = this.#context;
    if (actor.getSnapshot().status !== 'active') return over;
    actor.stop();
    await over;
    await session.idle();
    await session.returnToQueue(null, 0).catch((error: unknown) => {
      if (!(error instanceof LeaseLostError))
        logger.warn('could not return a review run to the queue; its lease will expire', {
          runId: session.run.runId,
          error,
        });
    });
  }
}
