import type { InspectionEvent } from 'xstate';
import type { Logger } from '../../log/index.ts';
import type { ReviewScope, ReviewTrigger } from '../../protocol/index.ts';
import type { ReviewAgent } from '../agent/index.ts';
import type { ReviewGit } from '../git/index.ts';
import type { GitHubSource } from '../github/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import type { ReviewStore, StoredItem, StoredRun, StoredWrite } from '../store/index.ts';
import type { RunTimes } from './limits.ts';

/** Clock that tests can simulate; milliseconds. */
export interface RunClock {
  now(): number;
  setTimeout(body: () => void, ms: number): unknown;
  clearTimeout(id: unknown): void;
}

/** Reads from a source; writes go through the outbox. */
export interface RunSource {
  readonly tokens: Pick<GitHubSource['tokens'], 'read'>;
  readPull: GitHubSource['readPull'];
}

export interface ReviewRunsOptions {
  readonly store: ReviewStore;
  readonly git: Pick<ReviewGit, 'prepare' | 'verifyClean' | 'release'>;
  readonly agent: Pick<ReviewAgent, 'review' | 'interrupt' | 'traceUrl'>;
  readonly source: RunSource;
  /** Called at each use, because settings can change during a review. */
  readonly settings: () => BackendSettings;
  /** Texts, besides the secret settings, that must not be published. */
  readonly secrets?: readonly string[];
  readonly logger: Logger;
  /** Name of this process among the replicas. */
  readonly node: string;
  readonly clock?: RunClock;
  readonly inspect?: (event: InspectionEvent, title: string) => void;
  readonly times?: Partial<RunTimes>;
}

export interface ReviewRequest {
  readonly trigger: ReviewTrigger;
  readonly scope: ReviewScope;
  readonly focus: string | null;
  /** Delivery that requests the review; an automatic review has that of the item. */
  readonly deliveryId?: string | undefined;
}

/** Review runs of one process. Invalid requests reject with ReviewError. */
export interface ReviewRuns {
  /** Starts to lease runs from the queue. */
  start(): void;
  /** Returns all active runs to the queue. */
  stop(): Promise<void>;
  /** Number of runs leased by this process. */
  readonly active: number;
  /** Time without a successful read of the queue while runs are leased, in milliseconds. */
  readonly idleMs: number;
  /** Queues a review. @throws ReviewError repositoryNotRouted, invalidState */
  dispatch(item: StoredItem, request: ReviewRequest): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /** Requests the cancellation of a run; the holder of its lease ends it. @throws ReviewError notFound */
  cancel(runId: string): Promise<StoredRun>;
  /**
   * Adds the writes of a draft to the outbox.
   *
   * @param options.override publishes a blocked draft, too: the head has moved, or a text was withheld
   * @throws ReviewError notFound, invalidState, githubWritesDisabled, draftBlocked
   */
  publish(draftId: string, options: { readonly override: boolean }): Promise<void>;
  /** @throws ReviewError notFound, invalidState */
  discard(draftId: string): Promise<void>;
  /** @throws ReviewError notFound, invalidState */
  resolveFinding(findingId: string, resolution: 'fixed' | 'dismissed', note: string | null): Promise<void>;
  /** Address of the page with the trace of a run; undefined without one. */
  traceUrl(run: StoredRun): Promise<string | undefined>;
  /** Applies the result of a write that was sent or has failed. Idempotent. */
  settleWrite(write: StoredWrite): Promise<void>;
  /** Queues all due automatic reviews. @returns their number */
  tick(): Promise<number>;
}

/** Dependencies shared by the files of this part. */
export type RunContext = Required<Pick<ReviewRunsOptions, 'clock'>> &
  Omit<ReviewRunsOptions, 'clock' | 'times'> & { readonly times: RunTimes };
