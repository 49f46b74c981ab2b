/** What is kept, as callers see it; how it lies in the database is said in tables.ts. Times are milliseconds since the epoch. */
import type {
  Delivery,
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
  /** When Auto Review was switched on: heads that were there before are not reviewed by themselves. */
  readonly baselineAt: number | null;
  readonly installationId: number | null;
  readonly defaultBranch: string | null;
  /** For conditional requests: one call, and 304 when nothing has changed. */
  readonly etag: string | null;
  /** Newest `updated_at` that was seen. */
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
  /** Head that was there when Auto Review was switched on, or that was dispatched last: the same head is not queued again. */
  readonly dispatchedHeadSha: string | null;
  readonly reviewedHeadSha: string | null;
  readonly reviewedBaseSha: string | null;
  /** Reviews of pushes in a row, for `PauseAfter`. */
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
  /** Someone wants it ended; whoever holds the lease sees it. */
  readonly isCancelRequested: boolean;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

/** A run that this process may work on. Every write of it names the token: one that lost its lease changes nothing. */
export interface Lease {
  readonly owner: string;
  readonly token: number;
  readonly until: number;
}
/** The lease was lost: stop, another process goes on. */
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
  readonly blockedBy: { readonly code: string; readonly message: string } | null;
  readonly publishedAt: number | null;
  readonly url: string | null;
  readonly version: number;
}

/** Work that is not a review: what a delivery or the clock asks for. At least once, in order per key. */
export interface Job {
  readonly jobId: number;
  readonly kind: 'delivery' | 'command' | 'sync' | 'write' | 'cleanup' | 'reconcile';
  /** Jobs with the same key, of whatever kind, run one after the other, in the order in which they were accepted. */
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
   * An unfinished job of this kind with the same value is enough: no second one is made. When that one is being worked on it
   * is done once more: it may have looked before what this one is about.
   */
  readonly dedupe?: string;
  readonly delayMs?: number;
}

/** A job that was given up, kept for people to see. */
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
  /** What it leads to; in the same transaction, so that an accepted delivery is never lost. */
  readonly job: NewJob | null;
  /** A mention: unique by the forge's comment id. */
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
  /** Unique for ever: the same write is never made twice. */
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

/** What a list of items shows of each besides itself. */
export interface ItemGlance {
  readonly openFindings: number;
  readonly activeRunId: string | null;
  readonly waitingRunId: string | null;
}

/** `next` is what the following page is asked for with; a cursor that no page has given out is refused (invalidCursor). */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly next: string | undefined;
}

/** What a holder of the lease may change of a run. `finishedAt` is set when the state is an end. */
export type RunChange = Partial<
  Omit<StoredRun, 'runId' | 'itemId' | 'repositoryKey' | 'number' | 'createdAt' | 'isCancelRequested'>
>;

/** How much there is to do. */
export interface Backlog {
  /** Of each kind that has any: jobs that wait, also for their time, and jobs that somebody has taken. */
  readonly jobs: ReadonlyMap<Job['kind'], { readonly waiting: number; readonly taken: number }>;
  /** Since when the one that is due longest waits; null: none is due. */
  readonly oldestDueAt: number | null;
  readonly deadJobs: number;
  readonly runs: { readonly waiting: number; readonly active: number };
  readonly writes: { readonly pending: number; readonly failed: number };
}

const notesPrefix = 'reviewNotes:';
const hunksPrefix = 'reviewHunks:';
/** Facts about runs are named by these and the run; they go with it. */
export const runFactPrefixes: readonly string[] = [notesPrefix, hunksPrefix];
/** Name of the fact that has the notes of a run. */
export const notesFact = (runId: string): string => `${notesPrefix}${runId}`;
/** Name of the fact that has the lines of the diff around the findings of a run's draft (`DraftHunks.hunks`). */
export const hunksFact = (runId: string): string => `${hunksPrefix}${runId}`;

/** Ranks for comparing severities: 0 is the most severe. */
export const severityRank: Readonly<Record<Severity, number>> = { critical: 0, major: 1, minor: 2, note: 3 };
