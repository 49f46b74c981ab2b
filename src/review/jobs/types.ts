import type { Logger } from '../../log/index.ts';
import type { ReviewScope, ReviewTrigger } from '../../protocol/index.ts';
import type { GitHubSource } from '../github/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import type { Job, ReviewStore, StoredItem, StoredRun, StoredWrite } from '../store/index.ts';
import type { Failure } from './failure.ts';

/** What jobs ask of the forge. */
export type JobSource = Pick<
  GitHubSource,
  'readPull' | 'isCollaborator' | 'send' | 'removeDuplicates' | 'syncAll' | 'reconcile' | 'requests'
> & {
  /** Installations have changed: what is remembered of them is forgotten. */
  readonly forget: () => void;
};

/** What jobs ask of the reviews. */
export interface JobRuns {
  /** @throws ReviewError */
  dispatch(
    item: StoredItem,
    wish: {
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
  /** A write was sent or given up; twice does no harm. */
  settleWrite(write: StoredWrite): Promise<void>;
  /** Queues the reviews that are due by themselves. */
  tick(): Promise<unknown>;
}

export interface JobWorkerOptions {
  readonly store: ReviewStore;
  readonly source: JobSource;
  readonly runs: JobRuns;
  readonly settings: () => BackendSettings;
  readonly logger: Logger;
  /** Names this process among the replicas. */
  readonly node: string;
}

/** What a kind of work is given besides the job. */
export interface JobContext extends JobWorkerOptions {
  /** Deliveries come to an end with the work that they led to. */
  readonly outcomes: Outcomes;
  /** Looks soon for reviews that are due. Nobody waits for it. */
  readonly tickSoon: () => void;
}

export interface Outcomes {
  /** All deliveries that wait and are about this pull request. */
  pull(repositoryKey: string, number: number, outcome: Outcome): Promise<void>;
  delivery(deliveryId: string, outcome: Outcome): Promise<void>;
}
export interface Outcome {
  readonly outcome: 'processed' | 'failed' | 'rejected';
  readonly reason: string | null;
}

/** One kind of work. */
export interface JobKind {
  /** Does it, or throws; done twice it is done once. The signal is aborted when the job is somebody else's now. */
  work(job: Job, context: JobContext, signal: AbortSignal): Promise<void>;
  /** It was tried for the last time: whoever waits for it is told. */
  giveUp?(job: Job, context: JobContext, failure: Failure): Promise<void>;
}
