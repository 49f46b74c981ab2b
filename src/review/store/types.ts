/**
 * What the backend keeps, and how it is asked for. Asynchronous, because the database may be another process; the same code
 * runs on SQLite (one file, one process) and PostgreSQL (several replicas). Times are milliseconds since the epoch, taken from
 * the database's clock wherever replicas compare them. Everything that several replicas may do at once is one statement or
 * one transaction here; no caller locks anything.
 */
import type {
  Delivery,
  ReviewEvent,
  ReviewEventKind,
  ReviewFinding,
  ReviewRunState,
  ReviewScope,
  ReviewTrigger,
  Severity,
  SourceWrite,
  SyncJob,
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
>;

export interface StoredRun {
  readonly runId: string;
  readonly itemId: string;
  readonly repositoryKey: string;
  readonly number: number;
  readonly trigger: ReviewTrigger;
  readonly scope: ReviewScope;
  readonly focus: string | null;
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

/** Everything may throw ReviewStoreError; what says `isRetryable` may pass by itself. */
export interface ReviewStore {
  readonly kind: 'sqlite' | 'postgres';

  // Repositories and items
  /**
   * Makes the table say what the configuration says; rows of repositories that left it stay, disabled. Where Auto Review is
   * switched on its baseline is set: to the time, and for the items that are known to their heads.
   */
  syncRepositories(
    wanted: readonly Pick<StoredRepository, 'repositoryKey' | 'instance' | 'owner' | 'name' | 'autoReview'>[],
  ): Promise<void>;
  repositories(): Promise<readonly StoredRepository[]>;
  repository(repositoryKey: string): Promise<StoredRepository | undefined>;
  /** How many open items each repository has; those that have none are left out. */
  openItemCounts(): Promise<ReadonlyMap<string, number>>;
  updateRepository(repositoryKey: string, change: Partial<Omit<StoredRepository, 'repositoryKey'>>): Promise<void>;
  /**
   * Inserts or updates what the forge knows. Facts that are older than what is known (`updatedAt`) change nothing. A new item
   * that was last updated before the second of its repository's baseline counts as dispatched.
   * @returns the item, and whether anything changed
   */
  upsertItem(
    facts: ItemFacts,
  ): Promise<{ readonly item: StoredItem; readonly changed: boolean; readonly headChanged: boolean }>;
  item(itemId: string): Promise<StoredItem | undefined>;
  itemByNumber(repositoryKey: string, number: number): Promise<StoredItem | undefined>;
  items(filter: {
    readonly repositoryKey?: string;
    readonly state?: string;
    readonly q?: string;
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<Page<StoredItem>>;
  updateItem(itemId: string, change: Partial<Omit<StoredItem, 'itemId' | 'repositoryKey' | 'number'>>): Promise<void>;
  /** By item id. */
  itemGlances(itemIds: readonly string[]): Promise<ReadonlyMap<string, ItemGlance>>;
  /**
   * Open items of repositories with Auto Review whose head has not been dispatched yet, newest first. `after`: the last one of
   * the page before, so that items which are not eligible do not stand in the way of others.
   */
  dueForAutoReview(limit: number, after?: Pick<StoredItem, 'itemId' | 'updatedAt'>): Promise<readonly StoredItem[]>;

  // Runs
  /**
   * Puts a review into the queue: at most one running and one waiting per item. A waiting one is replaced by a newer head
   * (its row becomes `superseded`); the same head with the same focus is the same run, unless a full review is wished for and
   * that one is incremental, or it is being cancelled. The item's `dispatchedHeadSha` becomes its head, and of what was
   * dispatched already no `auto` wish makes another run, even when that has ended.
   */
  enqueueRun(
    wish: Pick<
      StoredRun,
      'itemId' | 'repositoryKey' | 'number' | 'trigger' | 'scope' | 'focus' | 'headSha' | 'baseSha' | 'sinceSha'
    >,
  ): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /**
   * Takes the oldest run that may begin, or whose lease ran out, within the limits; `affinity`: repositories to prefer, until
   * another has waited for half a minute. `run.state` says where to go on; `attempt` has grown by one when the one who had it
   * before let the lease run out.
   */
  claimRun(
    owner: string,
    leaseMs: number,
    limits: RunLimits,
    affinity?: readonly string[],
  ): Promise<{ readonly run: StoredRun; readonly lease: Lease } | undefined>;
  /** Also of a lease that has run out, as long as nobody else has taken the run. @throws LeaseLostError */
  renewRun(
    runId: string,
    lease: Lease,
    leaseMs: number,
  ): Promise<{ readonly lease: Lease; readonly isCancelRequested: boolean }>;
  /** Writes the state and lets go when it is an end. @throws LeaseLostError */
  updateRun(runId: string, lease: Lease, change: RunChange): Promise<StoredRun>;
  /**
   * Gives a run back to the queue, to go on where its state says. When a newer one waits it is superseded instead, unless it is
   * publishing. @throws LeaseLostError
   */
  releaseRun(runId: string, lease: Lease, nextAttemptAt: number | null): Promise<void>;
  /** One that waits is cancelled at once; of one that is worked on its holder is told. @returns undefined: there is none */
  requestCancel(runId: string): Promise<StoredRun | undefined>;
  run(runId: string): Promise<StoredRun | undefined>;
  runs(filter: {
    readonly itemId?: string;
    readonly state?: string;
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<Page<StoredRun>>;

  // Drafts and findings
  /**
   * One draft per run: a second one replaces it while it is a draft. The run names it from then on.
   * @throws LeaseLostError; ReviewStoreError conflict, when the present one is being published or was discarded
   */
  putDraft(lease: Lease, draft: Omit<StoredDraft, 'version' | 'publishedAt' | 'url'>): Promise<StoredDraft>;
  draft(draftId: string): Promise<StoredDraft | undefined>;
  draftOfRun(runId: string): Promise<StoredDraft | undefined>;
  drafts(filter: {
    readonly itemId?: string;
    readonly status?: string;
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<Page<StoredDraft>>;
  /** @returns undefined when `version` is not the present one */
  updateDraft(
    draftId: string,
    version: number,
    change: Partial<Pick<StoredDraft, 'status' | 'summary' | 'warnings' | 'blockedBy' | 'publishedAt' | 'url'>>,
  ): Promise<StoredDraft | undefined>;
  updateFinding(findingId: string, change: Partial<StoredFinding>): Promise<StoredFinding | undefined>;
  finding(findingId: string): Promise<StoredFinding | undefined>;
  /** Published and not resolved: what must not be said again. */
  openFindings(itemId: string): Promise<readonly StoredFinding[]>;

  // Deliveries, commands, jobs
  /**
   * In one transaction: the delivery, its command, its job. Durable when it resolves. A second delivery of a comment that is
   * known is a duplicate too: it is kept as ignored, and makes no job.
   */
  takeDelivery(delivery: NewDelivery): Promise<'new' | 'duplicate'>;
  setDeliveryOutcome(deliveryId: string, outcome: Delivery['outcome'], reason: string | null): Promise<void>;
  deliveries(filter: {
    readonly limit: number;
    readonly cursor?: string;
    readonly outcome?: string;
  }): Promise<Page<Delivery>>;
  command(commentId: number): Promise<StoredCommand | undefined>;
  updateCommand(
    commentId: number,
    change: {
      readonly status: 'queued' | 'dispatched' | 'rejected' | 'failed';
      readonly errorCode?: string | null;
      readonly runId?: string | null;
    },
  ): Promise<void>;
  enqueueJob(job: NewJob): Promise<void>;
  /** Oldest first, at most one of a key. */
  claimJobs(owner: string, kinds: readonly Job['kind'][], limit: number, leaseMs: number): Promise<readonly Job[]>;
  /** @returns undefined when the lease was lost */
  renewJob(job: Job, leaseMs: number): Promise<Job | undefined>;
  /** @returns false when the lease was lost */
  completeJob(job: Job): Promise<boolean>;
  /** Again after `delayMs`, or never: `dead` keeps it for people to see. */
  failJob(job: Job, error: string, delayMs: number | 'dead'): Promise<boolean>;
  /** Newest first. */
  deadJobs(limit: number): Promise<readonly DeadJob[]>;

  // Writes to the forge (outbox)
  /**
   * @param job - what sends it; made in the same transaction, and only when the write is new
   * @returns the one with the same dedupe key when there is one already
   */
  putWrite(write: NewWrite, job?: (writeId: string) => NewJob): Promise<StoredWrite>;
  write(writeId: string): Promise<StoredWrite | undefined>;
  writes(filter: {
    readonly runId?: string;
    readonly status?: string;
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<Page<StoredWrite>>;
  /** What was sent stays sent: it is not made pending or failed again. */
  updateWrite(
    writeId: string,
    change: Partial<Pick<StoredWrite, 'status' | 'attempts' | 'response' | 'lastError'>>,
  ): Promise<void>;

  // Sync jobs as people see them
  putSyncJob(job: Omit<SyncJob, 'createdAt' | 'finishedAt'>): Promise<void>;
  syncJobs(limit: number): Promise<readonly SyncJob[]>;

  // Leases of single roles: sync scheduler, reconciler, cleaner. Taking one again renews it; for 0 ms: lets it go
  takeRole(role: string, owner: string, leaseMs: number): Promise<boolean>;

  // Facts by name: cursors, tokens of the reconciler …
  fact(name: string): Promise<string | undefined>;
  setFact(name: string, value: string): Promise<void>;

  // Events: numbered in the order in which they are committed, so that nobody who reads on from a number misses one
  publish(kind: ReviewEventKind, data: Readonly<Record<string, unknown>>): Promise<void>;
  events(after: number, limit: number): Promise<readonly ReviewEvent[]>;
  /** 0: there has been none. */
  newestEvent(): Promise<number>;
  /** Number of the oldest that is still kept; 0: there is none. */
  oldestEvent(): Promise<number>;
  /**
   * Told when there may be something new: at once in this process, by LISTEN/NOTIFY from others, and every two seconds in any
   * case. Only a hint: look for yourself.
   */
  onWake(listener: (what: 'events' | 'jobs' | 'runs') => void): () => void;

  /**
   * Deletes what is older than it must be kept: deliveries and dead jobs, events (the newest stays), runs that have ended with
   * their drafts and writes. A run with findings that are told and open on an item that is open stays. @returns rows
   */
  prune(before: { readonly deliveries: number; readonly events: number; readonly runs: number }): Promise<number>;
  /** Milliseconds by the database's clock. */
  now(): Promise<number>;
  close(): Promise<void>;
}

/** Ranks for comparing severities: 0 is the most severe. */
export const severityRank: Readonly<Record<Severity, number>> = { critical: 0, major: 1, minor: 2, note: 3 };
