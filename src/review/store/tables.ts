/** Types of the tables for queries. migrations.ts creates the tables. */
import type { Generated } from 'kysely';
import type { Delivery, ReviewEvent, SyncJob } from '../../protocol/index.ts';
import {
  entity,
  flag,
  instant,
  instantOrNone,
  json,
  jsonOr,
  jsonOrNone,
  jsonOrNull,
  type RowOf,
  text,
  textOrNone,
  textOrNull,
  whole,
  wholeOrNone,
  wholeOrNull,
  word,
  wordOrNone,
} from './columns.ts';
import type {
  DeadJob,
  StoredCommand,
  StoredDraft,
  StoredFinding,
  StoredItem,
  StoredRepository,
  StoredRun,
  StoredWrite,
} from './types.ts';

export const repositoryRow = entity<StoredRepository>()({
  repositoryKey: text,
  instance: text,
  owner: text,
  name: text,
  isEnabled: flag,
  autoReview: flag,
  baselineAt: wholeOrNull,
  installationId: wholeOrNull,
  defaultBranch: textOrNull,
  etag: textOrNull,
  syncedUntil: wholeOrNull,
  lastSyncAt: wholeOrNull,
  lastSyncError: jsonOrNull(),
});

export const itemRow = entity<StoredItem>()({
  itemId: text,
  repositoryKey: text,
  number: whole,
  title: text,
  description: text,
  author: text,
  authorAssociation: text,
  isBot: flag,
  state: word(),
  isDraft: flag,
  isFork: flag,
  labels: json(),
  baseRef: text,
  baseSha: text,
  headRef: text,
  headSha: text,
  url: text,
  updatedAt: whole,
  dispatchedHeadSha: textOrNull,
  reviewedHeadSha: textOrNull,
  reviewedBaseSha: textOrNull,
  automaticReviews: whole,
  isPaused: flag,
  summaryCommentId: wholeOrNull,
  deliveryId: textOrNull,
});

export const runRow = entity<StoredRun>()({
  runId: text,
  itemId: text,
  repositoryKey: text,
  number: whole,
  trigger: word(),
  scope: word(),
  focus: textOrNull,
  deliveryId: textOrNull,
  headSha: text,
  baseSha: text,
  sinceSha: textOrNull,
  state: word(),
  attempt: whole,
  nextAttemptAt: wholeOrNull,
  threadId: textOrNull,
  turnId: textOrNull,
  draftId: textOrNull,
  worktreePath: textOrNull,
  error: jsonOrNull(),
  isCancelRequested: flag,
  createdAt: whole,
  startedAt: wholeOrNull,
  finishedAt: wholeOrNull,
});

export const draftRow = entity<Omit<StoredDraft, 'findings'>>()({
  draftId: text,
  runId: text,
  itemId: text,
  headSha: text,
  status: word(),
  summary: text,
  reviewedFiles: whole,
  totalFiles: whole,
  skippedFiles: json(),
  warnings: json(),
  dropped: jsonOr([]),
  blockedBy: jsonOrNull(),
  publishedAt: wholeOrNull,
  url: textOrNull,
  version: whole,
});

export const findingRow = entity<StoredFinding>()({
  findingId: text,
  draftId: text,
  itemId: text,
  severity: word(),
  kind: word(),
  title: text,
  body: text,
  path: text,
  side: word(),
  line: wholeOrNone,
  startLine: wholeOrNone,
  oldText: textOrNone,
  newText: textOrNone,
  placement: word(),
  fingerprint: text,
  status: word(),
  isResolved: flag,
  resolution: wordOrNone(),
  resolutionNote: textOrNone,
  isPublished: flag,
  warnings: json(),
  commentId: wholeOrNull,
  threadNodeId: textOrNull,
  url: textOrNull,
});

export const deliveryRow = entity<Delivery>()({
  deliveryId: text,
  event: text,
  action: textOrNone,
  repositoryKey: textOrNone,
  number: wholeOrNone,
  sender: textOrNone,
  outcome: word(),
  reason: textOrNone,
  receivedAt: instant,
  tookMs: whole,
  redeliveries: whole,
});

export const commandRow = entity<StoredCommand>()({
  commentId: whole,
  repositoryKey: text,
  number: whole,
  actor: text,
  verb: text,
  focus: textOrNull,
  status: word(),
  errorCode: textOrNull,
  runId: textOrNull,
  createdAt: whole,
});

export const deadJobRow = entity<DeadJob>()({
  jobId: whole,
  kind: word(),
  key: text,
  payload: json(),
  attempt: whole,
  error: text,
  diedAt: whole,
});

export const writeRow = entity<StoredWrite>()({
  writeId: text,
  kind: word(),
  dedupeKey: text,
  repositoryKey: text,
  runId: textOrNull,
  request: json(),
  status: word(),
  attempts: whole,
  response: jsonOrNull(),
  lastError: jsonOrNull(),
  createdAt: whole,
  sentAt: wholeOrNull,
});

export const syncJobRow = entity<SyncJob>()({
  jobId: text,
  repositoryKey: textOrNone,
  trigger: word(),
  status: word(),
  repositories: whole,
  changedItems: whole,
  apiCalls: whole,
  notModified: whole,
  error: jsonOrNone(),
  createdAt: instant,
  finishedAt: instantOrNone,
});

export const eventRow = entity<ReviewEvent>()({ seq: whole, at: instant, kind: text, data: json() });

type Columns<E extends { readonly columns: unknown }> = RowOf<E['columns']>;

/** Table with a key that grows with every row. */
interface Keyed {
  readonly key: Generated<number>;
}

/** Columns of rows that one process at a time may work on. Available when `leaseOwner` is null. */
interface Leased {
  leaseOwner: string | null;
  leaseToken: number;
}

interface RunTable extends Columns<typeof runRow>, Keyed, Leased {
  /** First segment of the repository key, which `perSource` counts by. */
  source: string;
  /** `waiting` until the first claim, then `active`; null after the end. At most one of each per item. */
  phase: 'waiting' | 'active' | null;
  /** 0 without a holder. */
  leaseUntil: number;
}

interface DeliveryTable extends Columns<typeof deliveryRow>, Keyed {
  digest: string | null;
}

interface JobTable extends Leased {
  jobId: Generated<number>;
  kind: string;
  key: string;
  payload: string;
  dedupe: string | null;
  /** Earliest time of the next claim; for a leased job the end of its lease. */
  dueAt: number;
  attempt: number;
  /** 1 when it was requested again while it ran: state that it had read may be outdated. */
  again: number;
  lastError: string | null;
  createdAt: number;
}

type EventTable = Omit<Columns<typeof eventRow>, 'seq'> & { seq: Generated<number> };

export interface Tables {
  repositories: Columns<typeof repositoryRow>;
  items: Columns<typeof itemRow> & Keyed;
  runs: RunTable;
  drafts: Columns<typeof draftRow> & Keyed;
  findings: Columns<typeof findingRow> & Keyed;
  deliveries: DeliveryTable;
  commands: Columns<typeof commandRow>;
  jobs: JobTable;
  deadJobs: Columns<typeof deadJobRow>;
  writes: Columns<typeof writeRow> & Keyed;
  syncJobs: Columns<typeof syncJobRow> & Keyed;
  roles: { role: string; owner: string; until: number };
  facts: { name: string; value: string };
  events: EventTable;
  schemaVersion: { one: number; version: number };
}
