import type { Logger } from '../../log/index.ts';
import type { ReviewScope, ReviewTrigger } from '../../protocol/index.ts';
import type { GitHubSource } from '../github/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import type { Job, ReviewStore, StoredItem, StoredRun, StoredWrite } from '../store/index.ts';
import type { JobFailure } from './failure.ts';

/** Calls of jobs to the source. */
export type JobSource = Pick<
  GitHubSource,
  'readPull' | 'isCollaborator' | 'send' | 'removeDuplicates' | 'syncAll' | 'reconcile' | 'requests'
> & {
  /** Clears cached installations, because they have changed. */
  readonly clearInstallations: () => void;
};

/** Calls of jobs to review runs. */
export interface JobRuns {
  /** @throws ReviewError */
  dispatch(
    item: StoredItem,
    request: {
      readonly trigger: ReviewTrigger;
      readonly scope: ReviewScope;
      readonly focus: string | null;
      readonly deliveryId?: string | undefined;
    },
  ): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /** @throws ReviewError */
  cancel(runId: string): Promise<StoredRun>;
  /** @throws ReviewError */
  resolveFinding(findingId: string, resolution: 'fixed' | 'dismissed', note: string | null): Promise<void>;
  /** Applies the result of a write that was sent or has failed. Idempotent. */
  settleWrite(write: StoredWrite): Promise<void>;
  /** Queues due automatic reviews. */
  tick(): Promise<unknown>;
}

export interface JobWorkerOptions {
  readonly store: ReviewStore;
  readonly source: JobSource;
  readonly runs: JobRuns;
  readonly settings: () => BackendSettings;
  readonly logger: Logger;
  /** Name of this process among the replicas. */
  readonly node: string;
}

/** Dependencies of the kinds of jobs. */
export interface JobContext extends JobWorkerOptions {
  /** Saves the outcome of the deliveries that caused a job. */
  readonly outcomes: Outcomes;
  /** Starts a scan for due automatic reviews; returns at once. */
  readonly tickSoon: () => void;
}

export interface Outcomes {
  /** Settles all queued deliveries about this pull request. */
  pull(repositoryKey: string, number: number, outcome: Outcome): Promise<void>;
  delivery(deliveryId: string, outcome: Outcome): Promise<void>;
}
export interface Outcome {
  readonly outcome: 'processed' | 'failed' | 'rejected';
  readonly reason: string | null;
}

/** One kind of job. */
export interface JobKind {
  /** Executes the job, or throws. Idempotent. @param signal aborted when another process has taken the job */
  work(job: Job, context: JobContext, signal: AbortSignal): Promise<void>;
  /** Reports the failure after the last attempt. */
  giveUp?(job: Job, context: JobContext, failure: JobFailure): Promise<void>;
}
