/**
 * What the backend keeps, and how it is asked for. Asynchronous, because the database may be another process; the same code
 * runs on SQLite (one file, one process) and PostgreSQL (several replicas). Times are milliseconds since the epoch, taken from
 * the database's clock wherever replicas compare them. Everything that several replicas may do at once is one statement or
 * one transaction here; no caller locks anything.
 */
import type { Delivery, ReviewEvent, ReviewEventKind, SyncJob } from '../../protocol/index.ts';
import type {
  Backlog,
  DeadJob,
  ItemFacts,
  ItemGlance,
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
   * @param deliveryId the delivery that led to the read; saved with a change
   * @returns the item, and whether anything changed
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
    > &
      Partial<Pick<StoredRun, 'deliveryId'>>,
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
  /**
   * One that nobody works on, because it waits or backs off, is cancelled at once, unless it is publishing; of one that is
   * worked on its holder is told. @returns undefined: there is none
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
  /**
   * The version of its draft grows when something changes that people edit (`status`, `severity`, `title`, `body`, the texts of
   * a suggestion); what became of it at the forge (`isPublished`, `placement`, `resolution`, `url` …) leaves that as it is.
   * @param draftVersion - the change is made only while this is the present version of the draft, which then always grows
   * @returns undefined when there is no such finding, or `draftVersion` is not the present one
   */
  updateFinding(
    findingId: string,
    change: Partial<StoredFinding>,
    draftVersion?: number,
  ): Promise<StoredFinding | undefined>;
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
  /** Of all deliveries about a pull request (`pull_request`) that are queued. @returns their ids */
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
  /** What waits, all together: for metrics. */
  backlog(): Promise<Backlog>;

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
  /** @param value - null: there is none any more */
  setFact(name: string, value: string | null): Promise<void>;

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
   * Deletes what is older than it must be kept: deliveries, dead jobs and sync jobs, events (the newest stays), runs that have
   * ended with their drafts, writes and notes, and as old as those commands and writes without a run. A run with findings that are
   * told and open on an item that is open stays, and so does the command of an item that is open. @returns rows
   */
  prune(before: { readonly deliveries: number; readonly events: number; readonly runs: number }): Promise<number>;
  /** Milliseconds by the database's clock. */
  now(): Promise<number>;
  close(): Promise<void>;
}
