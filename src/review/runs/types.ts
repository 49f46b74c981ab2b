import type { InspectionEvent } from 'xstate';
import type { Logger } from '../../log/index.ts';
import type { ReviewScope, ReviewTrigger } from '../../protocol/index.ts';
import type { ReviewAgent } from '../agent/index.ts';
import type { ReviewGit } from '../git/index.ts';
import type { GitHubSource } from '../github/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import type { ReviewStore, StoredItem, StoredRun, StoredWrite } from '../store/index.ts';
import type { RunTimes } from './limits.ts';

/** Time, so that a test can make it pass. */
export interface RunClock {
  now(): number;
  setTimeout(body: () => void, ms: number): unknown;
  clearTimeout(id: unknown): void;
}

/** What the runs need of a source: everything that is written goes through the outbox instead. */
export interface RunSource {
  readonly tokens: Pick<GitHubSource['tokens'], 'read'>;
  readPull: GitHubSource['readPull'];
}

export interface ReviewRunsOptions {
  readonly store: ReviewStore;
  readonly git: Pick<ReviewGit, 'prepare' | 'verifyClean' | 'release'>;
  readonly agent: Pick<ReviewAgent, 'review' | 'interrupt' | 'traceUrl'>;
  readonly source: RunSource;
  /** Asked anew whenever one is needed: settings may change while a review is under way. */
  readonly settings: () => BackendSettings;
  /** Texts besides the secret settings that must be in no review. */
  readonly secrets?: readonly string[];
  readonly logger: Logger;
  /** Names this process among the replicas. */
  readonly node: string;
  readonly clock?: RunClock;
  readonly inspect?: (event: InspectionEvent) => void;
  readonly times?: Partial<RunTimes>;
}

export interface ReviewWish {
  readonly trigger: ReviewTrigger;
  readonly scope: ReviewScope;
  readonly focus: string | null;
  /** Delivery that asks for the review; an automatic review takes that of the item. */
  readonly deliveryId?: string | undefined;
}

/** Reviews, from the wish to the last write. What is asked for wrongly rejects with ReviewError. */
export interface ReviewRuns {
  /** Begins to take runs from the queue. */
  start(): void;
  /** Lets go of everything: a run that is at work is given back to the queue. */
  stop(): Promise<void>;
  /** Runs that this process works on. */
  readonly active: number;
  /** Puts a review into the queue. @throws ReviewError repositoryNotRouted, invalidState */
  dispatch(item: StoredItem, wish: ReviewWish): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /** Ends a run, as soon as whoever works on it sees it. @throws ReviewError notFound */
  cancel(runId: string): Promise<StoredRun>;
  /**
   * Puts a draft into the outbox.
   *
   * @param options.override also when the head has moved on, or when a text was withheld
   * @throws ReviewError notFound, invalidState, githubWritesDisabled, draftBlocked
   */
  publish(draftId: string, options: { readonly override: boolean }): Promise<void>;
  /** @throws ReviewError notFound, invalidState */
  discard(draftId: string): Promise<void>;
  /** @throws ReviewError notFound, invalidState */
  resolveFinding(findingId: string, resolution: 'fixed' | 'dismissed', note: string | null): Promise<void>;
  /** Where a person can watch the agent at a run; undefined when nobody shows it. */
  traceUrl(run: StoredRun): Promise<string | undefined>;
  /** A write was sent, or given up: applies what the source said. The same write twice is once. */
  settleWrite(write: StoredWrite): Promise<void>;
  /** Queues every automatic review that is due. @returns how many */
  tick(): Promise<number>;
}

/** What all parts of the runs share. */
export type RunContext = Required<Pick<ReviewRunsOptions, 'clock'>> &
  Omit<ReviewRunsOptions, 'clock' | 'times'> & { readonly times: RunTimes };
