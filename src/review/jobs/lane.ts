import { Pump } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import type { Job, ReviewStore } from '../store/index.ts';
import { type JobFailure, jobFailureOf, pauseAfter } from './failure.ts';
import { limits } from './limits.ts';

export interface LaneOptions {
  readonly store: Pick<ReviewStore, 'claimJobs' | 'renewJob' | 'completeJob' | 'failJob'>;
  /** Name of the holder of leases. */
  readonly owner: string;
  readonly kinds: readonly Job['kind'][];
  readonly concurrency: number;
  readonly work: (job: Job, signal: AbortSignal) => Promise<void>;
  /** Called before a job becomes a dead job; if it fails, the job is tried again. */
  readonly giveUp: (job: Job, failure: JobFailure) => Promise<void>;
  readonly logger: Logger;
  readonly onEnd?: (kind: Job['kind'], result: JobResult) => void;
  readonly leaseMs?: number;
  readonly renewMs?: number;
}
export type JobResult = 'completed' | 'failed' | 'dead' | 'lost';

interface Running {
  job: Job;
  readonly lost: AbortController;
  readonly ended: Promise<void>;
}

/** Leases jobs of some kinds, at most `concurrency` at a time, and executes each. */
export class Lane {
  readonly #options: LaneOptions;
  readonly #running = new Map<number, Running>();
  readonly #renewal: NodeJS.Timeout;
  readonly #claims = new Pump(() => this.#claim());
  #isStopped = false;
  #hasFailed = false;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#renewal = setInterval(() => this.#renewAll(), options.renewMs ?? limits.renewMs).unref();
  }

  get running(): number {
    return this.#running.size;
  }

  /** Claims jobs, because some may be due. */
  wake(): void {
    if (!this.#isStopped) void this.#claims.request();
  }

  /** Stops claiming, waits for running jobs, and returns jobs to the queue that do not end within `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#renewal);
    await this.#claims.idle();
    const all = [...this.#running.values()];
    const grace = timeout(graceMs);
    await Promise.race([Promise.all(all.map(({ ended }) => ended)), grace.over]);
    grace.end();
    for (const { job, lost } of this.#running.values()) {
      lost.abort(new Error('the backend is stopping'));
      await this.#options.store.failJob(job, 'The backend was stopped.', 0).catch(this.#unwritten);
    }
  }

  get #hasFreeSlot(): boolean {
    return !this.#isStopped && this.#running.size < this.#options.concurrency;
  }

  /** Claims jobs for the free slots. The end of each job wakes the lane, so nothing is missed without a free slot. */
  async #claim(): Promise<void> {
    const { store, owner, kinds, concurrency, leaseMs = limits.leaseMs } = this.#options;
    if (!this.#hasFreeSlot) return;
    try {
      const jobs = await store.claimJobs(owner, kinds, concurrency - this.#running.size, leaseMs);
      for (const job of jobs) this.#begin(job);
      this.#hasFailed = false;
    } catch (error) {
      // The timer of the store wakes the lane again.
      if (!this.#hasFailed) this.#options.logger.warn('could not claim jobs; retrying', { kinds, error });
      this.#hasFailed = true;
    }
  }

  #begin(job: Job): void {
    const lost = new AbortController();
    const ended = this.#run(job, lost.signal).finally(() => {
      this.#running.delete(job.jobId);
      this.wake();
    });
    this.#running.set(job.jobId, { job, lost, ended });
  }

  async #run(job: Job, signal: AbortSignal): Promise<void> {
    const { store, work, onEnd } = this.#options;
    try {
      await work(job, signal);
      const isOurs = !signal.aborted && (await store.completeJob(job));
      onEnd?.(job.kind, isOurs ? 'completed' : 'lost');
    } catch (error) {
      const result = signal.aborted ? 'lost' : await this.#failed(job, error);
      onEnd?.(job.kind, result);
    }
  }

  async #failed(job: Job, error: unknown): Promise<JobResult> {
    const { store, giveUp, logger } = this.#options;
    const failure = jobFailureOf(error);
    const { jobId, kind, key, attempt } = job;
    const about = { jobId, kind, key, attempt, code: failure.code };
    if (failure.isBug) logger.bug(error, about);
    const pause = pauseAfter(job, failure);
    const text = `${failure.code}: ${failure.message}`;
    try {
      if (pause === 'dead') await giveUp(job, failure);
      await store.failJob(job, text, pause);
    } catch (fault) {
      this.#unwritten(fault);
      return 'failed';
    }
    if (pause === 'dead') logger.error('gave up a job', { ...about, problem: failure.message });
    else logger.info('retrying a job', { ...about, problem: failure.message, pauseMs: pause });
    return pause === 'dead' ? 'dead' : 'failed';
  }

  /** The job's lease expires; the next claim repeats the job. */
  readonly #unwritten = (error: unknown): void => {
    this.#options.logger.warn('could not save job result; retrying', { error });
  };

  #renewAll(): void {
    for (const running of this.#running.values()) void this.#renew(running);
  }

  async #renew(running: Running): Promise<void> {
    const { store, leaseMs = limits.leaseMs } = this.#options;
    try {
      const job = await store.renewJob(running.job, leaseMs);
      if (job) running.job = job;
      else if (this.#running.has(running.job.jobId)) running.lost.abort(new Error('another process has the job'));
    } catch (error) {
      this.#options.logger.warn('could not renew the lease of a job; retrying', { jobId: running.job.jobId, error });
    }
  }
}

function timeout(ms: number): { readonly over: Promise<void>; readonly end: () => void } {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return { over, end: () => clearTimeout(timer) };
}
