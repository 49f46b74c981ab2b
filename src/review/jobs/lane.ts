import { Pump } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { type Job, type ReviewStore, retryLevel } from '../store/index.ts';
import {
  attemptsExhausted,
  exceedsAttempts,
  exceedsReports,
  type JobFailure,
  jobFailureOf,
  pauseAfter,
} from './failure.ts';
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
  /** Time of the latest claim that ended well, or when no slot was free. */
  #claimedAt = performance.now();

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#renewal = setInterval(() => this.#renewAll(), options.renewMs ?? limits.renewMs).unref();
  }

  get running(): number {
    return this.#running.size;
  }

  get kinds(): readonly Job['kind'][] {
    return this.#options.kinds;
  }

  /** Time without a successful claim although slots are free, in milliseconds. */
  get idleMs(): number {
    return this.#hasFreeSlot ? performance.now() - this.#claimedAt : 0;
  }

  /** Claims jobs, because some may be due. */
  wake(): void {
    if (!this.#isStopped) void this.#claims.request();
  }

  /** Stops claiming, waits for running jobs, and returns jobs to the queue that do not end within `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#renewal);
    const grace = timeout(graceMs);
    await Promise.race([this.#ended(), grace.over]);
    grace.end();
    const left = [...this.#running.values()];
    for (const { lost } of left) lost.abort(new Error('the backend is stopping'));
    await Promise.all(left.map(({ job }) => this.#returnToQueue(job)));
  }

  /** Resolves when the claim in progress and all jobs have ended. */
  async #ended(): Promise<void> {
    await this.#claims.idle();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  async #returnToQueue(job: Job): Promise<void> {
    await this.#options.store.failJob(job, 'The backend was stopped.', 0).catch(this.#unwritten);
  }

  get #hasFreeSlot(): boolean {
    return !this.#isStopped && this.#running.size < this.#options.concurrency;
  }

  /** Claims jobs for the free slots. The end of each job wakes the lane, so nothing is missed without a free slot. */
  async #claim(): Promise<void> {
    const { store, owner, kinds, concurrency, leaseMs = limits.leaseMs } = this.#options;
    if (!this.#hasFreeSlot) {
      this.#claimedAt = performance.now();
      return;
    }
    try {
      const jobs = await store.claimJobs(owner, kinds, concurrency - this.#running.size, leaseMs);
      this.#hasFailed = false;
      this.#claimedAt = performance.now();
      if (this.#isStopped) await Promise.all(jobs.map((job) => this.#returnToQueue(job)));
      else for (const job of jobs) this.#begin(job);
    } catch (error) {
      // The timer of the store wakes the lane again.
      if (!this.#hasFailed) this.#options.logger[retryLevel(error)]('could not claim jobs; retrying', { kinds, error });
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
      if (exceedsAttempts(job)) {
        const result = await this.#end(job, attemptsExhausted, 'dead');
        onEnd?.(job.kind, result);
        return;
      }
      await work(job, signal);
      const isOurs = !signal.aborted && (await store.completeJob(job));
      onEnd?.(job.kind, isOurs ? 'completed' : 'lost');
    } catch (error) {
      const result = signal.aborted ? 'lost' : await this.#failed(job, error);
      onEnd?.(job.kind, result);
    }
  }

  async #failed(job: Job, error: unknown): Promise<JobResult> {
    const failure = jobFailureOf(error);
    if (failure.isBug) this.#options.logger.bug(error, aboutOf(job, failure));
    return this.#end(job, failure, pauseAfter(job, failure));
  }

  /** Saves the failure of a job, and reports it when the job is given up. */
  async #end(job: Job, failure: JobFailure, pause: number | 'dead'): Promise<JobResult> {
    const { store, giveUp, logger } = this.#options;
    const about = aboutOf(job, failure);
    try {
      if (pause === 'dead' && !exceedsReports(job)) await giveUp(job, failure);
      const text = `${failure.code}: ${failure.message}`;
      await store.failJob(job, text, pause, { keepsAttempt: failure.isOutage });
    } catch (fault) {
      this.#unwritten(fault);
      return 'failed';
    }
    if (pause === 'dead') logger.error('gave up a job', { ...about, problem: failure.message });
    else
      logger[failure.isOutage ? 'debug' : 'info']('retrying a job', {
        ...about,
        problem: failure.message,
        pauseMs: pause,
      });
    return pause === 'dead' ? 'dead' : 'failed';
  }

  /** The job's lease expires; the next claim repeats the job. */
  readonly #unwritten = (error: unknown): void => {
    this.#options.logger[retryLevel(error)]('could not save job result; retrying', { error });
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
      const { jobId } = running.job;
      this.#options.logger[retryLevel(error)]('could not renew the lease of a job; retrying', { jobId, error });
    }
  }
}

const aboutOf = ({ jobId, kind, key, attempt }: Job, { code }: JobFailure) => ({ jobId, kind, key, attempt, code });

function timeout(ms: number): { readonly over: Promise<void>; readonly end: () => void } {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return { over, end: () => clearTimeout(timer) };
}
