/** Stored values as callers see them; tables.ts maps them to columns. Times are milliseconds since the epoch. */
import type {
  Delivery,
  DroppedFinding,
  ReviewFinding,
  ReviewRunState,
  ReviewScope,
  ReviewTrigger,
  Severity,
  SourceWrite,
} from '../../protocol/index.ts';

export interface StoredRepository {
  readonly repositoryKey: string;
  readonly instance: string;
  readonly owner: string;
  readonly name: string;
  readonly isEnabled: boolean;
  readonly autoReview: boolean;
  /** Time at which Auto Review was enabled: earlier heads are not reviewed automatically. */
  readonly baselineAt: number | null;
  readonly installationId: number | null;
  readonly defaultBranch: string | null;
  /** ETag for conditional requests, which are answered with 304 when nothing has changed. */
  readonly etag: string | null;
  /** Newest `updated_at` of a synced item. */
  readonly syncedUntil: number | null;
  readonly lastSyncAt: number | null;
  readonly lastSyncError: { readonly code: string; readonly message: string; readonly at: number } | null;
}

export interface StoredItem {
  readonly itemId: string;
  readonly repositoryKey: string;
  readonly number: number;
  readonly title: string;
  readonly description: string;
  readonly author: string;
  readonly authorAssociation: string;
  readonly isBot: boolean;
  readonly state: 'open' | 'closed' | 'merged';
  readonly isDraft: boolean;
  readonly isFork: boolean;
  readonly labels: readonly string[];
  readonly baseRef: string;
  readonly baseSha: string;
  readonly headRef: string;
  readonly headSha: string;
  readonly url: string;
  readonly updatedAt: number;
  /** Head at the time Auto Review was enabled, or last dispatched head. The same head is not queued again. */
  readonly dispatchedHeadSha: string | null;
  readonly reviewedHeadSha: string | null;
  readonly reviewedBaseSha: string | null;
  /** Consecutive automatic reviews, for `PauseAfter`. */
  readonly automaticReviews: number;
  readonly isPaused: boolean;
  /** The summary comment that is edited in place. */
  readonly summaryCommentId: number | null;
  /** Delivery that reported the last change; null when a sync found the present head. */
  readonly deliveryId: string | null;
}
export type ItemFacts = Omit<
  StoredItem,
  | 'itemId'
  | 'dispatchedHeadSha'
  | 'reviewedHeadSha'
  | 'reviewedBaseSha'
  | 'automaticReviews'
  | 'isPaused'
  | 'summaryCommentId'
  | 'deliveryId'
>;

export interface StoredRun {
  readonly runId: string;
  readonly itemId: string;
  readonly repositoryKey: string;
  readonly number: number;
  readonly trigger: ReviewTrigger;
  readonly scope: ReviewScope;
  readonly focus: string | null;
  /** Delivery that led to the run; null for a run that a person or a sync started. */
  readonly deliveryId: string | null;
  readonly headSha: string;
  readonly baseSha: string;
  readonly sinceSha: string | null;
  readonly state: ReviewRunState;
  readonly attempt: number;
  readonly nextAttemptAt: number | null;
  readonly threadId: string | null;
  readonly turnId: string | null;
  readonly draftId: string | null;
  readonly worktreePath: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Cancellation was requested; the holder of the lease reads this when it renews the lease. */
  readonly isCancelRequested: boolean;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

/** Right of one process to work on a run or job. Each write names the token, so a process that lost its lease changes nothing. */
export interface Lease {
  readonly owner: string;
  readonly token: number;
  readonly until: number;
}
/** The lease was lost: the process must stop, because another one continues the run. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

export interface RunLimits {
  readonly global: number;
  readonly perRepository: number;
  readonly perSource: number;
}

export interface StoredFinding extends Omit<ReviewFinding, 'url'> {
  readonly itemId: string;
  readonly commentId: number | null;
  readonly threadNodeId: string | null;
  readonly url: string | null;
}
export interface StoredDraft {
  readonly draftId: string;
  readonly runId: string;
  readonly itemId: string;
  readonly headSha: string;
  readonly status: 'draft' | 'publishing' | 'published' | 'discarded' | 'publishFailed';
  readonly summary: string;
  readonly findings: readonly StoredFinding[];
  readonly reviewedFiles: number;
  readonly totalFiles: number;
  readonly skippedFiles: readonly { readonly path: string; readonly reason: string }[];
  readonly warnings: readonly string[];
  readonly dropped: readonly DroppedFinding[];
  readonly blockedBy: { readonly code: string; readonly message: string } | null;
  readonly publishedAt: number | null;
  readonly url: string | null;
  readonly version: number;
}

/** Unit of work that is not a review run, caused by a delivery or a schedule. Runs at least once, in order per key. */
export interface Job {
  readonly jobId: number;
  readonly kind: 'delivery' | 'command' | 'sync' | 'write' | 'cleanup' | 'reconcile';
  /** Jobs with the same key, of any kind, run one after the other, in the order in which they were accepted. */
  readonly key: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** 1 the first time. */
  readonly attempt: number;
  readonly lease: Lease;
}
export interface NewJob {
  readonly kind: Job['kind'];
  readonly key: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /**
   * No job is added while an unfinished job of this kind has the same value. If that job is running, it runs once more afterwards: it may
   * have read state from before this request.
   */
  readonly dedupe?: string;
  readonly delayMs?: number;
}

/** Job without further attempts, stored for users to inspect. */
export interface DeadJob extends Pick<Job, 'jobId' | 'kind' | 'key' | 'payload' | 'attempt'> {
  readonly error: string;
  readonly diedAt: number;
}

export interface NewDelivery {
  readonly deliveryId: string;
  readonly event: string;
  readonly action: string | null;
  readonly repositoryKey: string | null;
  readonly number: number | null;
  readonly sender: string | null;
  readonly outcome: Delivery['outcome'];
  readonly reason: string | null;
  readonly tookMs: number;
  /** Hash of a body that GitHub sends once, so that it is known under another delivery id. */
  readonly digest?: string | null;
  /** Job that the delivery causes, added in the same transaction, so that an accepted delivery is never lost. */
  readonly job: NewJob | null;
  /** Command of a mention, unique by the source's comment id. */
  readonly command: NewCommand | null;
}
export interface NewCommand {
  readonly commentId: number;
  readonly repositoryKey: string;
  readonly number: number;
  readonly actor: string;
  readonly verb: string;
  readonly focus: string | null;
  readonly status: 'queued' | 'rejected';
  readonly errorCode: string | null;
}
export interface StoredCommand extends Omit<NewCommand, 'status'> {
  readonly status: 'queued' | 'dispatched' | 'rejected' | 'failed';
  readonly runId: string | null;
  readonly createdAt: number;
}

export interface NewWrite {
  readonly kind: SourceWrite['kind'];
  /** Permanently unique: the same write is never sent twice. */
  readonly dedupeKey: string;
  readonly repositoryKey: string;
  readonly runId: string | null;
  readonly request: Readonly<Record<string, unknown>>;
}
export interface StoredWrite extends NewWrite {
  readonly writeId: string;
  readonly status: SourceWrite['status'];
  readonly attempts: number;
  readonly response: Readonly<Record<string, unknown>> | null;
  readonly lastError: SourceWrite['lastError'] | null;
  readonly createdAt: number;
  readonly sentAt: number | null;
}

/** Activity of an item, for lists. */
export interface ItemActivity {
  readonly openFindings: number;
  readonly activeRunId: string | null;
  readonly waitingRunId: string | null;
}

/** One page of a list. `next` is the cursor of the following page; other cursors are rejected (invalidCursor). */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly next: string | undefined;
}

/** Fields of a run that the holder of its lease may change. An end state sets `finishedAt`. */
export type RunChange = Partial<
  Omit<StoredRun, 'runId' | 'itemId' | 'repositoryKey' | 'number' | 'createdAt' | 'isCancelRequested'>
>;

/** Numbers of pending jobs, runs and writes. */
export interface Backlog {
  /** Jobs by kind: waiting (due now or later) and leased. Kinds without jobs are left out. */
  readonly jobs: ReadonlyMap<Job['kind'], { readonly waiting: number; readonly taken: number }>;
  /** Due time of the job that has been due longest; null without a due job. */
  readonly oldestDueAt: number | null;
  readonly deadJobs: number;
  readonly runs: { readonly waiting: number; readonly active: number };
  readonly writes: { readonly pending: number; readonly failed: number };
}

const notesPrefix = 'reviewNotes:';
const hunksPrefix = 'reviewHunks:';
const submittedPrefix = 'reviewSubmitted:';
/** Prefixes of facts about runs, followed by the run id. Such a fact is deleted with its run. */
export const runFactPrefixes: readonly string[] = [notesPrefix, hunksPrefix, submittedPrefix];
/** Name of the fact that holds the notes of a run. */
export const notesFact = (runId: string): string => `${notesPrefix}${runId}`;
/** Name of the fact that holds the diff lines around the findings of a run's draft (`DraftHunks.hunks`). */
export const hunksFact = (runId: string): string => `${hunksPrefix}${runId}`;
/** Name of the fact that holds title and severity of the findings of a run's draft, before edits of a person. */
export const submittedFact = (runId: string): string => `${submittedPrefix}${runId}`;

/** Ranks for comparing severities: 0 is the most severe. */
export const severityRank: Readonly<Record<Severity, number>> = { critical: 0, major: 1, minor: 2, note: 3 };
