/** Bodies of the API that are not in `src/protocol`. */
import * as v from 'valibot';
import {
  BackendStatus,
  DashboardLink,
  DeadJob,
  Delivery,
  DraftHunks,
  findingSeverities,
  ItemDetail,
  Repository,
  ReviewDraft,
  ReviewEvent,
  ReviewFinding,
  ReviewItem,
  ReviewRun,
  reviewScopes,
  ServerProof,
  SettingsView,
  SourceWrite,
  SyncJob,
} from '../../protocol/index.ts';

const text = (max: number) => v.pipe(v.string(), v.maxLength(max));
const line = (max: number) => v.pipe(text(max), v.trim(), v.nonEmpty());

export const DispatchInput = v.object({
  scope: v.optional(v.picklist(reviewScopes), 'full'),
  focus: v.optional(line(500)),
});
export const DraftChange = v.object({ summary: text(20_000) });
export const PublishInput = v.object({ override: v.optional(v.boolean(), false) });
export const FindingChange = v.object({
  status: v.optional(v.picklist(['accepted', 'skipped'])),
  severity: v.optional(v.picklist(findingSeverities)),
  title: v.optional(line(200)),
  body: v.optional(line(10_000)),
  newText: v.optional(text(20_000)),
});
export const ResolveInput = v.object({
  resolution: v.picklist(['fixed', 'dismissed']),
  note: v.optional(text(1_000)),
});
export const SyncInput = v.object({ repositoryKey: v.optional(line(300)) });
export const SettingsChangeInput = v.object({
  baseRevision: line(100),
  set: v.pipe(v.record(text(200), v.unknown()), v.minEntries(1), v.maxEntries(200)),
});

const page = <const T extends v.GenericSchema>(row: T) =>
  v.object({ rows: v.array(row), next: v.optional(v.string()) });
export const Health = v.object({
  service: v.literal('oratorio'),
  /** `unavailable` (503): the database accepts no writes, or no work is done; `reason` names the cause. */
  status: v.picklist(['ok', 'unavailable']),
  node: v.string(),
  time: v.string(),
  reason: v.optional(v.string()),
});
export const DispatchResult = v.object({ run: ReviewRun, isNew: v.boolean() });
export const SettingsChangeResult = v.object({
  revision: v.string(),
  changed: v.array(v.string()),
  restartNeededFor: v.array(v.string()),
});
export const WebhookResult = v.object({
  status: v.picklist(['pong', 'duplicate', 'ignored', 'queued', 'rejected']),
  deliveryId: v.optional(v.string()),
  reason: v.optional(v.string()),
  commandId: v.optional(v.number()),
  errorCode: v.optional(v.string()),
});
export const WebhookPayload = v.pipe(v.looseObject({}), v.description('Payload of a GitHub event.'));
export const ReviewErrorBody = v.object({
  error: v.object({ code: v.string(), message: v.string(), details: v.record(v.string(), v.unknown()) }),
});

export const requestSchemas = {
  DispatchInput,
  DraftChange,
  PublishInput,
  FindingChange,
  ResolveInput,
  SyncInput,
  SettingsChangeInput,
  WebhookPayload,
} as const;
export const responseSchemas = {
  Health,
  ServerProof,
  BackendStatus,
  ReviewItem,
  ItemPage: page(ReviewItem),
  ItemDetail,
  ReviewRun,
  RunPage: page(ReviewRun),
  RunTrace: DashboardLink,
  DispatchResult,
  ReviewDraft,
  DraftPage: page(ReviewDraft),
  DraftHunks,
  ReviewFinding,
  Repository,
  SyncJob,
  DeadJob,
  DeliveryPage: page(Delivery),
  SourceWrite,
  WritePage: page(SourceWrite),
  SettingsView,
  SettingsChangeResult,
  WebhookResult,
  ReviewEvent,
  ReviewError: ReviewErrorBody,
} as const;
