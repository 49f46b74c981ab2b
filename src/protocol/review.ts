/**
 * The review backend on the wire (design §4; the specification leaves its shapes open): `/api/v1/…`, camelCase JSON, times ISO
 * 8601 in UTC, errors `{error: {code, message, details}}`. Codes and kinds are open: readers tolerate ones they do not know.
 */
import * as v from 'valibot';

const id = v.pipe(v.string(), v.nonEmpty());
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** `github:github.com/owner/repo`, in lower case: how a repository is known everywhere. */
export const RepositoryKey = v.pipe(v.string(), v.regex(/^github:[a-z0-9.-]+(:\d+)?\/[a-z0-9._-]+\/[a-z0-9._-]+$/));

export const onPushModes = ['never', 'incremental', 'full', 'onRequest'] as const;
export const findingSeverities = ['critical', 'major', 'minor', 'note'] as const;
export type Severity = (typeof findingSeverities)[number];

export const reviewRunStates = [
  'queued',
  'preparing',
  'reviewing',
  'drafting',
  'publishing',
  'backingOff',
  'cancelling',
  'done',
  'failed',
  'cancelled',
  'superseded',
] as const;
export type ReviewRunState = (typeof reviewRunStates)[number];
export const reviewTriggers = ['auto', 'mention', 'manual', 'checkRerequest'] as const;
export type ReviewTrigger = (typeof reviewTriggers)[number];
export const reviewScopes = ['full', 'incremental'] as const;
export type ReviewScope = (typeof reviewScopes)[number];

export const Repository = v.object({
  repositoryKey: id,
  instance: v.string(),
  owner: v.string(),
  name: v.string(),
  autoReview: v.boolean(),
  writesEnabled: v.boolean(),
  /** Where backend and agent server have its checkout; absent: no route, so it cannot be reviewed. */
  workspacePath: v.optional(v.string()),
  installationId: v.optional(v.number()),
  lastSyncAt: v.optional(v.string()),
  lastSyncError: v.optional(v.object({ code: v.string(), message: v.string(), at: v.string() })),
  openItems: count,
});
export type Repository = v.InferOutput<typeof Repository>;

/** A pull request. */
export const ReviewItem = v.object({
  itemId: id,
  repositoryKey: id,
  number: v.number(),
  title: v.string(),
  author: v.string(),
  authorAssociation: v.string(),
  state: v.picklist(['open', 'closed', 'merged']),
  isDraft: v.boolean(),
  isFork: v.boolean(),
  isPaused: v.boolean(),
  labels: v.array(v.string()),
  baseRef: v.string(),
  baseSha: v.string(),
  headRef: v.string(),
  headSha: v.string(),
  url: v.string(),
  updatedAt: v.string(),
  /** Head of the last finished review. */
  reviewedHeadSha: v.optional(v.string()),
  openFindings: count,
  activeRunId: v.optional(v.string()),
  waitingRunId: v.optional(v.string()),
});
export type ReviewItem = v.InferOutput<typeof ReviewItem>;

export const ReviewRun = v.object({
  runId: id,
  itemId: id,
  repositoryKey: id,
  number: v.number(),
  trigger: v.picklist(reviewTriggers),
  scope: v.picklist(reviewScopes),
  focus: v.optional(v.string()),
  /** Delivery that led to the run (`Delivery.deliveryId`). */
  deliveryId: v.optional(v.string()),
  headSha: v.string(),
  baseSha: v.string(),
  /** Head of the review that this one continues. */
  sinceSha: v.optional(v.string()),
  state: v.picklist(reviewRunStates),
  attempt: v.number(),
  maxAttempts: v.number(),
  nextAttemptAt: v.optional(v.string()),
  /** Where to watch it: the session of the agent server's Dashboard. */
  threadId: v.optional(v.string()),
  turnId: v.optional(v.string()),
  draftId: v.optional(v.string()),
  error: v.optional(v.object({ code: v.string(), message: v.string() })),
  createdAt: v.string(),
  startedAt: v.optional(v.string()),
  finishedAt: v.optional(v.string()),
});
export type ReviewRun = v.InferOutput<typeof ReviewRun>;

export const findingKinds = ['suggestion', 'comment'] as const;
export const findingResolutions = ['fixed', 'dismissed', 'outdated'] as const;
export const ReviewFinding = v.object({
  findingId: id,
  draftId: id,
  severity: v.picklist(findingSeverities),
  kind: v.picklist(findingKinds),
  title: v.string(),
  body: v.string(),
  path: v.string(),
  side: v.picklist(['RIGHT', 'LEFT']),
  line: v.optional(v.number()),
  startLine: v.optional(v.number()),
  oldText: v.optional(v.string()),
  newText: v.optional(v.string()),
  /** Place of its publication: an inline comment, a file comment, or the summary. */
  placement: v.picklist(['inline', 'file', 'summary']),
  fingerprint: v.string(),
  status: v.picklist(['accepted', 'skipped']),
  isResolved: v.boolean(),
  resolution: v.optional(v.picklist(findingResolutions)),
  resolutionNote: v.optional(v.string()),
  isPublished: v.boolean(),
  url: v.optional(v.string()),
  warnings: v.array(v.string()),
});
export type ReviewFinding = v.InferOutput<typeof ReviewFinding>;

/** Reasons for leaving a finding of the agent out of a draft. */
export const dropReasons = [
  'alreadyPublished',
  'dismissed',
  'skipped',
  'merged',
  'belowMinSeverity',
  'withdrawn',
  'notTaken',
] as const;
/** Finding of the agent that is not in the draft. */
export const DroppedFinding = v.object({
  severity: v.picklist(findingSeverities),
  title: v.string(),
  path: v.string(),
  side: v.picklist(['RIGHT', 'LEFT']),
  line: v.optional(v.number()),
  startLine: v.optional(v.number()),
  reason: v.picklist(dropReasons),
  /** Finding that it repeats; absent for one that repeats none. */
  sameAs: v.optional(id),
});
export type DroppedFinding = v.InferOutput<typeof DroppedFinding>;

export const ReviewDraft = v.object({
  draftId: id,
  runId: id,
  itemId: id,
  headSha: v.string(),
  status: v.picklist(['draft', 'publishing', 'published', 'discarded', 'publishFailed']),
  summary: v.string(),
  findings: v.array(ReviewFinding),
  reviewedFiles: count,
  totalFiles: count,
  /** Files that were left out, and why: generated, ignored, too large, binary. */
  skippedFiles: v.array(v.object({ path: v.string(), reason: v.string() })),
  warnings: v.array(v.string()),
  /** Findings of the agent that the draft leaves out, each with the reason. */
  dropped: v.optional(v.array(DroppedFinding), []),
  /** Reason why the draft cannot be published in its current state; absent when it can. */
  blockedBy: v.optional(v.object({ code: v.string(), message: v.string() })),
  publishedAt: v.optional(v.string()),
  url: v.optional(v.string()),
  version: v.number(),
});
export type ReviewDraft = v.InferOutput<typeof ReviewDraft>;

/** The lines of the diff around a finding, out of one hunk. */
export const FindingHunk = v.object({
  path: v.string(),
  /** Number of the first line, in the old file and in the new one. */
  oldStart: count,
  newStart: count,
  lines: v.array(
    v.object({
      kind: v.picklist(['context', 'added', 'removed']),
      oldLine: v.optional(v.number()),
      newLine: v.optional(v.number()),
      text: v.string(),
    }),
  ),
});
export type FindingHunk = v.InferOutput<typeof FindingHunk>;
/** By finding; one that has no place in the diff is left out. */
export const DraftHunks = v.object({ hunks: v.record(v.string(), FindingHunk) });
export type DraftHunks = v.InferOutput<typeof DraftHunks>;

/** A stored webhook delivery. */
export const Delivery = v.object({
  deliveryId: id,
  event: v.string(),
  action: v.optional(v.string()),
  repositoryKey: v.optional(v.string()),
  number: v.optional(v.number()),
  sender: v.optional(v.string()),
  outcome: v.picklist(['queued', 'ignored', 'rejected', 'processed', 'failed']),
  reason: v.optional(v.string()),
  receivedAt: v.string(),
  /** From arrival to the answer, in milliseconds. */
  tookMs: v.number(),
  redeliveries: count,
});
export type Delivery = v.InferOutput<typeof Delivery>;

export const SyncJob = v.object({
  jobId: id,
  repositoryKey: v.optional(v.string()),
  trigger: v.picklist(['schedule', 'webhook', 'manual', 'startup']),
  status: v.picklist(['queued', 'running', 'succeeded', 'failed']),
  repositories: count,
  changedItems: count,
  apiCalls: count,
  notModified: count,
  error: v.optional(v.object({ code: v.string(), message: v.string() })),
  createdAt: v.string(),
  finishedAt: v.optional(v.string()),
});
export type SyncJob = v.InferOutput<typeof SyncJob>;

/** Result of a write to the source: the outbox. */
export const SourceWrite = v.object({
  writeId: id,
  kind: v.picklist(['review', 'summary', 'checkRun', 'resolveThread', 'reaction', 'reply', 'fileComment']),
  dedupeKey: v.string(),
  runId: v.optional(v.string()),
  status: v.picklist(['pending', 'sent', 'failed', 'skipped']),
  attempts: count,
  lastError: v.optional(v.object({ code: v.string(), message: v.string(), status: v.optional(v.number()) })),
  url: v.optional(v.string()),
  createdAt: v.string(),
  sentAt: v.optional(v.string()),
});
export type SourceWrite = v.InferOutput<typeof SourceWrite>;

/** A pull request with its latest runs and drafts, the newest first. */
export const ItemDetail = v.object({ item: ReviewItem, runs: v.array(ReviewRun), drafts: v.array(ReviewDraft) });
export type ItemDetail = v.InferOutput<typeof ItemDetail>;

/** State of a backend, and whether it is ready. */
export const BackendStatus = v.object({
  version: v.string(),
  node: v.string(),
  storage: v.picklist(['sqlite', 'postgres']),
  writesEnabled: v.boolean(),
  webhookReady: v.boolean(),
  settingsWritable: v.boolean(),
  settingsProblem: v.nullable(v.string()),
  repositories: v.number(),
  newestEvent: v.number(),
  role: v.optional(v.picklist(['all', 'web', 'worker'])),
  /** Whether the source can be asked with the App's credentials. */
  source: v.optional(
    v.object({
      state: v.picklist(['ready', 'notConfigured', 'failed']),
      code: v.optional(v.string()),
      message: v.optional(v.string()),
    }),
  ),
  /** Work that was given up and is stored for display, up to 200. */
  deadJobs: v.number(),
});
export type BackendStatus = v.InferOutput<typeof BackendStatus>;

/** Work that was given up, kept to be seen. */
export const DeadJob = v.object({
  jobId: v.number(),
  kind: v.string(),
  key: v.string(),
  attempt: v.number(),
  error: v.string(),
  diedAt: v.string(),
});
export type DeadJob = v.InferOutput<typeof DeadJob>;

/** Effective settings, without secrets, and their problems. */
export const SettingsView = v.object({
  revision: v.string(),
  writable: v.boolean(),
  file: v.string(),
  settings: v.record(v.string(), v.unknown()),
  warnings: v.array(v.string()),
  problem: v.nullable(v.string()),
  restartNeededFor: v.array(v.string()),
  fromEnvironment: v.array(v.object({ path: v.string(), variable: v.string() })),
});
export type SettingsView = v.InferOutput<typeof SettingsView>;

/** Kinds of the backend's event stream (`GET /api/v1/events`, SSE with ids): `{seq, at, kind, data}`. */
export const reviewEventKinds = [
  'backend.started',
  'backend.stopping',
  'item.changed',
  'run.changed',
  'draft.changed',
  'delivery.received',
  'sync.changed',
  'write.changed',
  'source.changed',
] as const;
export type ReviewEventKind = (typeof reviewEventKinds)[number];
export const ReviewEvent = v.object({
  seq: v.number(),
  at: v.string(),
  kind: v.string(),
  data: v.record(v.string(), v.unknown()),
});
export type ReviewEvent = v.InferOutput<typeof ReviewEvent>;

/** Input of the model through the dynamic tool `SubmitReviewDraft`. */
export const SubmittedFinding = v.object({
  severity: v.pipe(v.picklist(findingSeverities), v.description('critical, major, minor or note')),
  title: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200), v.description('One line, without markup.')),
  body: v.pipe(
    v.string(),
    v.trim(),
    v.nonEmpty(),
    v.maxLength(10_000),
    v.description('Why it matters and what to do, in Markdown.'),
  ),
  path: v.pipe(v.string(), v.nonEmpty(), v.maxLength(4_096), v.description('Path of the file in the repository.')),
  oldText: v.pipe(
    v.optional(v.pipe(v.string(), v.maxLength(20_000))),
    v.description(
      'The very text of the changed file that this is about, whole lines, copied exactly. The line is found by it.',
    ),
  ),
  newText: v.pipe(
    v.optional(v.pipe(v.string(), v.maxLength(20_000))),
    v.description('New text in place of oldText: makes it a suggestion that can be applied.'),
  ),
  line: v.pipe(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
    v.description('Only a hint, when oldText occurs several times.'),
  ),
  side: v.pipe(v.optional(v.picklist(['RIGHT', 'LEFT'])), v.description('LEFT: about a line that was removed.')),
});
export type SubmittedFinding = v.InferOutput<typeof SubmittedFinding>;
export const SubmittedDraft = v.object({
  summary: v.pipe(
    v.string(),
    v.trim(),
    v.maxLength(5_000),
    v.description('A few sentences on the change and its risk.'),
  ),
  findings: v.pipe(v.array(SubmittedFinding), v.maxLength(200)),
});
export type SubmittedDraft = v.InferOutput<typeof SubmittedDraft>;
export const ResolvedFinding = v.object({
  findingId: id,
  resolution: v.picklist(['fixed', 'dismissed']),
  note: v.optional(v.pipe(v.string(), v.maxLength(1_000))),
});
export type ResolvedFinding = v.InferOutput<typeof ResolvedFinding>;
