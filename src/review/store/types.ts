/**
 * Interface of the store. The same code runs on SQLite (one file, one process) and PostgreSQL (several replicas). Times are milliseconds
 * since the epoch, from the database's clock wherever replicas compare them. Each operation that several replicas can run at once is one
 * statement or one transaction; callers never lock.
 */
import type { Delivery, ReviewEvent, ReviewEventKind, SyncJob } from '../../protocol/index.ts';
import type {
  Backlog,
  DeadJob,
  ItemActivity,
  ItemFacts,
  Job,
  Lease,
  NewDelivery,
  NewJob,
  NewWrite,
  Page,
  RunChange,
  RunLimits,
  StoredCommand,
  StoredDraft,
  StoredFinding,
  StoredItem,
  StoredRepository,
  StoredRun,
  StoredWrite,
} from './stored.ts';

export * from './stored.ts';

/** Every method can throw ReviewStoreError; `isRetryable` marks failures that a later attempt can pass. */
export interface ReviewStore {
  readonly kind: 'sqlite' | 'postgres';

  // Repositories and items
  /**
   * Updates the table from the configuration. Repositories that were removed from it stay, disabled. Enabling Auto Review sets the
   * baseline: the time in the repository, and the present head in each known item.
   */
  syncRepositories(
    wanted: readonly Pick<StoredRepository, 'repositoryKey' | 'instance' | 'owner' | 'name' | 'autoReview'>[],
  ): Promise<void>;
  repositories(): Promise<readonly StoredRepository[]>;
  repository(repositoryKey: string): Promise<StoredRepository | undefined>;
  /** Number of open items by repository key; repositories without open items are left out. */
  openItemCounts(): Promise<ReadonlyMap<string, number>>;
  updateRepository(repositoryKey: string, change: Partial<Omit<StoredRepository, 'repositoryKey'>>): Promise<void>;
  /**
   * Inserts or updates facts from the source. Facts older than the stored ones (`updatedAt`) change nothing. A new item whose last update
   * is before the second of its repository's baseline counts as dispatched.
   * @param deliveryId the delivery that led to the read; saved with a change
   * @returns the item, and whether it and its head changed
   */
  upsertItem(
    facts: ItemFacts,
    deliveryId?: string,
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
  itemActivity(itemIds: readonly string[]): Promise<ReadonlyMap<string, ItemActivity>>;
  /**
   * Open items of repositories with Auto Review whose head has not been dispatched, newest first.
   * @param after - last item of the page before, so that ineligible items do not block others
   */
  dueForAutoReview(limit: number, after?: Pick<StoredItem, 'itemId' | 'updatedAt'>): Promise<readonly StoredItem[]>;

  // Runs
  /**
   * Queues a review run: at most one active and one waiting per item. A newer head replaces a waiting run, which becomes `superseded`.
   * A request with the same head and focus returns the present run, unless that run is incremental and the request is full, or that run
   * is being cancelled. Sets `dispatchedHeadSha` of the item; for a dispatched head an `auto` request starts no other run, even after
   * the first has ended.
   */
  enqueueRun(
    request: Pick<
      StoredRun,
      'itemId' | 'repositoryKey' | 'number' | 'trigger' | 'scope' | 'focus' | 'headSha' | 'baseSha' | 'sinceSha'
    > &
      Partial<Pick<StoredRun, 'deliveryId'>>,
  ): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /**
   * Leases the oldest run that may start, or whose lease expired, within the limits. `run.state` is the step to resume at; `attempt` is
   * one higher after an expired lease.
   * @param affinity - keys of preferred repositories, until another run has waited for `affinityMs`
   * @returns undefined when no run may start
   */
  claimRun(
    owner: string,
    leaseMs: number,
    limits: RunLimits,
    affinity?: readonly string[],
  ): Promise<{ readonly run: StoredRun; readonly lease: Lease } | undefined>;
  /** Renews a lease, even an expired one that no other process has taken. @throws LeaseLostError */
  renewRun(
    runId: string,
    lease: Lease,
    leaseMs: number,
  ): Promise<{ readonly lease: Lease; readonly isCancelRequested: boolean }>;
  /** Changes a run; an end state releases the lease. @throws LeaseLostError */
  updateRun(runId: string, lease: Lease, change: RunChange): Promise<StoredRun>;
  /**
   * Returns a run to the queue, to resume at its state. If a newer run waits, it is superseded instead, unless it is publishing.
   * @throws LeaseLostError
   */
  releaseRun(runId: string, lease: Lease, nextAttemptAt: number | null): Promise<void>;
  /**
   * Cancels a run without a holder (waiting or backing off) at once, unless it is publishing. For a leased run it sets
   * `isCancelRequested`, which the holder reads. @returns undefined for an unknown run
   */
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
   * Stores the draft of a run and links it to the run. Replaces an earlier draft with status `draft`.
   * @throws LeaseLostError; ReviewStoreError conflict, when the earlier draft has another status
   */
  putDraft(lease: Lease, draft: Omit<StoredDraft, 'version' | 'publishedAt' | 'url'>): Promise<StoredDraft>;
  draft(draftId: string): Promise<StoredDraft | undefined>;
  draftOfRun(runId: string): Promise<StoredDraft | undefined>;
  /** Status of the draft of a run, for a caller that polls it. */
  draftStatus(runId: string): Promise<StoredDraft['status'] | undefined>;
  drafts(filter: {
    readonly itemId?: string;
    readonly status?: string;
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<Page<StoredDraft>>;
  /** Changes a draft. @returns undefined when `version` is outdated */
  updateDraft(
    draftId: string,
    version: number,
    change: Partial<Pick<StoredDraft, 'status' | 'summary' | 'warnings' | 'blockedBy' | 'publishedAt' | 'url'>>,
  ): Promise<StoredDraft | undefined>;
  /**
   * Changes a finding. A change of a field that users edit (`status`, `severity`, `kind`, `title`, `body`, the texts of a suggestion)
   * increments the version of its draft; results of the publication (`isPublished`, `placement`, `resolution`, `url` …) do not.
   * @param draftVersion - requires this version of the draft, and always increments it
   * @returns undefined for an unknown finding or an outdated `draftVersion`
   */
  updateFinding(
    findingId: string,
    change: Partial<StoredFinding>,
    draftVersion?: number,
  ): Promise<StoredFinding | undefined>;
  finding(findingId: string): Promise<StoredFinding | undefined>;
  /** Findings that are published and not resolved, which must not be published again. */
  openFindings(itemId: string): Promise<readonly StoredFinding[]>;

  // Deliveries, commands, jobs
  /**
   * Stores a delivery with its command and job in one transaction; durable when it resolves. A delivery that was queued or processed
   * before is a duplicate, by its id, by its digest, or by the comment of its command; so is a delivery whose outcome stays the same. A
   * delivery that was ignored, was rejected or has failed is new again with another outcome.
   */
  takeDelivery(delivery: NewDelivery): Promise<'new' | 'duplicate'>;
  setDeliveryOutcome(deliveryId: string, outcome: Delivery['outcome'], reason: string | null): Promise<void>;
  /** Sets the outcome of all queued `pull_request` deliveries of a pull request. @returns their ids */
  settleDeliveries(
    repositoryKey: string,
    number: number,
    outcome: Delivery['outcome'],
    reason: string | null,
  ): Promise<readonly string[]>;
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
  /** Leases due jobs, oldest first, at most one per key. */
  claimJobs(owner: string, kinds: readonly Job['kind'][], limit: number, leaseMs: number): Promise<readonly Job[]>;
  /** @returns undefined when the lease was lost */
  renewJob(job: Job, leaseMs: number): Promise<Job | undefined>;
  /** @returns false when the lease was lost */
  completeJob(job: Job): Promise<boolean>;
  /**
   * Queues a job again after `delayMs`, or moves it to the dead jobs.
   * @param options.keepsAttempt the attempt does not count, up to `keptAttemptsMs` after the creation of the job
   * @returns false when the lease was lost
   */
  failJob(
    job: Job,
    error: string,
    delayMs: number | 'dead',
    options?: { readonly keepsAttempt: boolean },
  ): Promise<boolean>;
  /** Newest first. */
  deadJobs(limit: number): Promise<readonly DeadJob[]>;
  /** Counts pending work, for metrics. */
  backlog(): Promise<Backlog>;

  // Writes to the source (outbox)
  /**
   * Adds a write, unless one with the same dedupe key exists.
   * @param job - job that sends the write, added in the same transaction, only for a new write
   * @returns the new or the existing write
   */
  putWrite(write: NewWrite, job?: (writeId: string) => NewJob): Promise<StoredWrite>;
  write(writeId: string): Promise<StoredWrite | undefined>;
  writes(filter: {
    readonly runId?: string;
    readonly status?: string;
    readonly limit: number;
    readonly cursor?: string;
  }): Promise<Page<StoredWrite>>;
  /** Changes a write. A sent write cannot become pending or failed again. */
  updateWrite(
    writeId: string,
    change: Partial<Pick<StoredWrite, 'status' | 'attempts' | 'response' | 'lastError'>>,
  ): Promise<void>;

  // Sync jobs
  putSyncJob(job: Omit<SyncJob, 'createdAt' | 'finishedAt'>): Promise<void>;
  syncJobs(limit: number): Promise<readonly SyncJob[]>;

  /**
   * Takes or renews the leases of roles (sync scheduler, reconciler, cleaner); 0 ms releases them.
   * @returns the taken ones, without those that another process holds
   */
  takeRoles(roles: readonly string[], owner: string, leaseMs: number): Promise<ReadonlySet<string>>;

  // Facts by name: cursors, tokens of the reconciler, …
  fact(name: string): Promise<string | undefined>;
  /** @param value - null deletes the fact */
  setFact(name: string, value: string | null): Promise<void>;

  // Events: numbered in the order of their commits, so that a reader that resumes after a number misses none
  publish(kind: ReviewEventKind, data: Readonly<Record<string, unknown>>): Promise<void>;
  events(after: number, limit: number): Promise<readonly ReviewEvent[]>;
  /** Number of the newest event; 0 without events. */
  newestEvent(): Promise<number>;
  /** Number of the oldest stored event; 0 without events. */
  oldestEvent(): Promise<number>;
  /**
   * Calls `listener` when there may be something new: at once for this process, by LISTEN/NOTIFY for others, and every `wakeMs` in any
   * case. It is only a hint: the listener must query. @returns removes the listener
   */
  onWake(listener: (what: 'events' | 'jobs' | 'runs') => void): () => void;

  /**
   * Deletes rows older than the given times: deliveries with dead jobs and sync jobs; events, except for the newest; ended runs with
   * their drafts, writes and notes, and with the same limit commands and writes without a run. A run with unresolved published findings
   * on an open item stays, and so do commands on an open item. @returns number of deleted rows
   */
  prune(before: { readonly deliveries: number; readonly events: number; readonly runs: number }): Promise<number>;
  /** Milliseconds since the epoch by the database's clock. */
  now(): Promise<number>;
  close(): Promise<void>;
}
