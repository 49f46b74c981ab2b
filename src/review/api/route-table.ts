/** Route table of the review backend as plain data, for the server and the OpenAPI document. Handlers belong to other files. */
import type { Method } from '../../http/index.ts';
import { proofPaths } from '../../protocol/index.ts';
import type { ReviewErrorCode } from '../errors.ts';
import type { requestSchemas, responseSchemas } from './shapes.ts';

type Code = ReviewErrorCode;

export interface QueryParameter {
  readonly name: string;
  readonly description: string;
  readonly values?: readonly string[];
}

export type RouteResponse =
  | { readonly kind: 'json'; readonly schema: keyof typeof responseSchemas; readonly array?: true }
  | { readonly kind: 'document' }
  /** Exposition format of Prometheus. */
  | { readonly kind: 'metrics' }
  /** Stream of the inspector. */
  | { readonly kind: 'inspection' }
  | { readonly kind: 'events' };

export interface ReviewRoute {
  readonly method: Method;
  readonly path: string;
  /** Required authentication: service token, signature of the delivery, or none. */
  readonly auth: 'token' | 'signature' | 'none';
  readonly summary: string;
  readonly query?: readonly QueryParameter[];
  readonly headers?: readonly (QueryParameter & { readonly required: boolean })[];
  readonly request?: keyof typeof requestSchemas;
  readonly status: number;
  readonly response: RouteResponse;
  readonly errors: readonly Code[];
}

const v1 = '/api/v1';
const paging: readonly QueryParameter[] = [
  { name: 'limit', description: 'Rows of the page, 1 to 200; default 50.' },
  { name: 'cursor', description: '`next` of the previous page.' },
];
const byItem = { name: 'itemId', description: 'Only of this item.' } as const;
const ifMatch = {
  name: 'If-Match',
  description: '`ETag` of the response that the change is based on.',
  required: true,
} as const;
const item = { kind: 'json', schema: 'ReviewItem' } as const;
const page = <S extends keyof typeof responseSchemas>(schema: S) => ({ kind: 'json', schema }) as const;

const get = { method: 'GET', auth: 'token', status: 200 } as const;
const post = { method: 'POST', auth: 'token', status: 200 } as const;

/** The route table, by operation. */
export const reviewRoutes = {
  getHealth: {
    ...get,
    auth: 'none',
    path: '/health',
    summary:
      'Whether the backend does its work; 503 with `reason` while its database accepts no writes or work stands still.',
    response: page('Health'),
    errors: [],
  },
  getLiveness: {
    ...get,
    auth: 'none',
    path: '/health/live',
    summary:
      'Whether the process answers, also without its database. A restart does not end an outage of the database.',
    response: page('Health'),
    errors: [],
  },
  prove: {
    ...get,
    auth: 'none',
    path: proofPaths.backend,
    summary: 'Proves that this backend holds the service token of a client, before the client sends it.',
    query: [
      { name: 'nonce', description: '16 to 64 random bytes in base64url; a new one for each request.' },
      { name: 'key', description: 'Id of the token: the first 22 characters of its key MAC.' },
    ],
    response: page('ServerProof'),
    errors: ['invalidRequest', 'unauthorized'],
  },
  getStatus: {
    ...get,
    path: `${v1}/status`,
    summary: 'Version, settings and readiness of the backend.',
    response: page('BackendStatus'),
    errors: [],
  },
  listItems: {
    ...get,
    path: `${v1}/items`,
    summary: 'Pull requests, last changed first.',
    query: [
      { name: 'repository', description: 'Only of this repository, by its key.' },
      { name: 'state', description: 'Only in this state.', values: ['open', 'closed', 'merged'] },
      { name: 'q', description: 'Words in the title, author, branch or repository, or the number.' },
      ...paging,
    ],
    response: page('ItemPage'),
    errors: ['invalidCursor'],
  },
  getItem: {
    ...get,
    path: `${v1}/items/:itemId`,
    summary: 'One pull request with its runs and drafts.',
    response: page('ItemDetail'),
    errors: ['notFound'],
  },
  dispatchItem: {
    ...post,
    path: `${v1}/items/:itemId/dispatch`,
    status: 202,
    summary: 'Queues a review. A request with the same head and focus returns the present run.',
    request: 'DispatchInput',
    response: page('DispatchResult'),
    errors: ['notFound', 'activeRunExists', 'repositoryNotRouted', 'invalidState'],
  },
  pauseItem: {
    ...post,
    path: `${v1}/items/:itemId/pause`,
    summary: 'Pauses automatic reviews of this pull request.',
    response: item,
    errors: ['notFound'],
  },
  resumeItem: {
    ...post,
    path: `${v1}/items/:itemId/resume`,
    summary: 'Resumes automatic reviews of this pull request.',
    response: item,
    errors: ['notFound'],
  },
  cancelItem: {
    ...post,
    path: `${v1}/items/:itemId/cancel`,
    status: 202,
    summary: 'Cancels the active and the waiting review.',
    response: item,
    errors: ['notFound', 'invalidState'],
  },
  listRuns: {
    ...get,
    path: `${v1}/runs`,
    summary: 'Review runs, newest first.',
    query: [byItem, { name: 'state', description: 'Only in this state.' }, ...paging],
    response: page('RunPage'),
    errors: ['invalidCursor'],
  },
  getRun: {
    ...get,
    path: `${v1}/runs/:runId`,
    summary: 'One review run.',
    response: page('ReviewRun'),
    errors: ['notFound'],
  },
  getRunTrace: {
    ...get,
    path: `${v1}/runs/:runId/trace`,
    summary: 'Address of the trace of a run in the Dashboard of its workspace.',
    response: page('RunTrace'),
    errors: ['notFound'],
  },
  cancelRun: {
    ...post,
    path: `${v1}/runs/:runId/cancel`,
    status: 202,
    summary: 'Cancels a review run.',
    response: page('ReviewRun'),
    errors: ['notFound', 'invalidState'],
  },
  listDrafts: {
    ...get,
    path: `${v1}/review-drafts`,
    summary: 'Drafts, newest first.',
    query: [byItem, { name: 'status', description: 'Only with this status.' }, ...paging],
    response: page('DraftPage'),
    errors: ['invalidCursor'],
  },
  getDraft: {
    ...get,
    path: `${v1}/review-drafts/:draftId`,
    summary: 'One draft with its findings. `ETag` is its version.',
    response: page('ReviewDraft'),
    errors: ['notFound'],
  },
  getDraftHunks: {
    ...get,
    path: `${v1}/review-drafts/:draftId/hunks`,
    summary: 'Diff lines around the findings of a draft, by finding.',
    response: page('DraftHunks'),
    errors: ['notFound'],
  },
  editDraft: {
    ...get,
    method: 'PATCH',
    path: `${v1}/review-drafts/:draftId`,
    summary: 'Changes the summary of an unpublished draft.',
    headers: [ifMatch],
    request: 'DraftChange',
    response: page('ReviewDraft'),
    errors: ['notFound', 'invalidState', 'versionRequired', 'versionStale'],
  },
  publishDraft: {
    ...post,
    path: `${v1}/review-drafts/:draftId/publish`,
    status: 202,
    summary: 'Publishes a draft on the source.',
    request: 'PublishInput',
    response: page('ReviewDraft'),
    errors: ['notFound', 'invalidState', 'draftBlocked', 'githubWritesDisabled'],
  },
  discardDraft: {
    ...post,
    path: `${v1}/review-drafts/:draftId/discard`,
    summary: 'Discards a draft without publishing it.',
    response: page('ReviewDraft'),
    errors: ['notFound', 'invalidState'],
  },
  editFinding: {
    ...get,
    method: 'PATCH',
    path: `${v1}/findings/:findingId`,
    summary: 'Accepts, skips or rewords a finding of an unpublished draft. `ETag` is the version of the draft.',
    headers: [{ ...ifMatch, description: 'Version of the draft that the change is based on.', required: false }],
    request: 'FindingChange',
    response: page('ReviewFinding'),
    errors: ['notFound', 'invalidState', 'versionStale'],
  },
  resolveFinding: {
    ...post,
    path: `${v1}/findings/:findingId/resolve`,
    summary: 'Resolves a published finding and its thread on the source.',
    request: 'ResolveInput',
    response: page('ReviewFinding'),
    errors: ['notFound', 'invalidState'],
  },
  listSources: {
    ...get,
    path: `${v1}/sources`,
    summary: 'Repositories with the result of their last sync.',
    response: { kind: 'json', schema: 'Repository', array: true },
    errors: [],
  },
  listSyncJobs: {
    ...get,
    path: `${v1}/sources/sync-jobs`,
    summary: 'Sync jobs, newest first.',
    query: [{ name: 'limit', description: 'Maximum number, 1 to 200; default 50.' }],
    response: { kind: 'json', schema: 'SyncJob', array: true },
    errors: [],
  },
  startSync: {
    ...post,
    path: `${v1}/sources/sync-jobs`,
    status: 202,
    summary: 'Syncs one repository, or all, now.',
    request: 'SyncInput',
    response: page('SyncJob'),
    errors: ['notFound', 'sourceUnavailable'],
  },
  takeWebhook: {
    ...post,
    auth: 'signature',
    path: `${v1}/sources/github/webhook`,
    status: 202,
    summary: 'Receives deliveries of GitHub. 200 instead of 202 for `pong` and `duplicate`.',
    headers: [
      { name: 'X-GitHub-Event', description: 'Name of the event.', required: true },
      { name: 'X-GitHub-Delivery', description: 'Id of the delivery, which is accepted once.', required: true },
      { name: 'X-Hub-Signature-256', description: '`sha256=` and the HMAC of the body in hex.', required: true },
    ],
    request: 'WebhookPayload',
    response: page('WebhookResult'),
    errors: [
      'invalidPayload',
      'missingHeader',
      'invalidRequest',
      'invalidSignature',
      'unsupportedMediaType',
      'tooManyInvalidSignatures',
      'githubWebhookSecretRequired',
      'intakeUnavailable',
    ],
  },
  listDeliveries: {
    ...get,
    path: `${v1}/deliveries`,
    summary: 'Deliveries of the webhook, newest first.',
    query: [
      {
        name: 'outcome',
        description: 'Only with this outcome.',
        values: ['queued', 'ignored', 'rejected', 'processed', 'failed'],
      },
      ...paging,
    ],
    response: page('DeliveryPage'),
    errors: ['invalidCursor'],
  },
  listWrites: {
    ...get,
    path: `${v1}/source-writes`,
    summary: 'Writes to the source, newest first.',
    query: [
      { name: 'runId', description: 'Only of this run.' },
      { name: 'status', description: 'Only with this status.', values: ['pending', 'sent', 'failed', 'skipped'] },
      ...paging,
    ],
    response: page('WritePage'),
    errors: ['invalidCursor'],
  },
  retryWrite: {
    ...post,
    path: `${v1}/source-writes/:writeId/retry`,
    status: 202,
    summary: 'Sends a failed write again.',
    response: page('SourceWrite'),
    errors: ['notFound', 'invalidState'],
  },
  getSettings: {
    ...get,
    path: `${v1}/settings/diagnostics`,
    summary: 'Effective settings without secrets, and their problems.',
    response: page('SettingsView'),
    errors: [],
  },
  changeSettings: {
    ...get,
    method: 'PUT',
    path: `${v1}/settings/server-configuration`,
    summary: 'Changes settings in the file. Null removes one.',
    request: 'SettingsChangeInput',
    response: page('SettingsChangeResult'),
    errors: [
      'configurationValidationFailed',
      'configWritesForbidden',
      'configurationOfDeployment',
      'configurationRevisionMismatch',
      'configurationWriteFailed',
    ],
  },
  streamEvents: {
    ...get,
    path: `${v1}/events`,
    summary: 'Stream of changes, resumable by id.',
    query: [{ name: 'lastEventId', description: 'Same as the header Last-Event-ID.' }],
    headers: [
      {
        name: 'Last-Event-ID',
        description: 'Id of the last event received: the stream resumes after it.',
        required: false,
      },
    ],
    response: { kind: 'events' },
    errors: ['invalidRequest'],
  },
  listDeadJobs: {
    ...get,
    path: `${v1}/dead-jobs`,
    summary: 'Jobs without further attempts, newest first.',
    query: [{ name: 'limit', description: 'Maximum number, 1 to 200; default 50.' }],
    response: { kind: 'json', schema: 'DeadJob', array: true },
    errors: [],
  },
  getMetrics: {
    ...get,
    path: `${v1}/metrics`,
    summary: 'Metrics for Prometheus.',
    response: { kind: 'metrics' },
    errors: [],
  },
  listMachines: {
    ...get,
    path: `${v1}/machines`,
    summary: 'State charts for the inspector.',
    response: { kind: 'document' },
    errors: [],
  },
  streamInspection: {
    ...get,
    path: `${v1}/inspect`,
    summary: 'Stream of the state machines of running reviews in this process, resumable by id.',
    query: [
      { name: 'format', description: '`stately` for the tools of Stately.', values: ['stately'] },
      { name: 'lastEventId', description: 'Same as the header Last-Event-ID.' },
    ],
    response: { kind: 'inspection' },
    errors: ['invalidRequest'],
  },
  getOpenApi: {
    ...get,
    path: `${v1}/openapi.json`,
    summary: 'This API as an OpenAPI 3.1 document.',
    response: { kind: 'document' },
    errors: [],
  },
} as const satisfies Record<string, ReviewRoute>;

export type ReviewOperation = keyof typeof reviewRoutes;

const everywhere: readonly Code[] = [
  'hostNotAllowed',
  'headersTooLarge',
  'internalError',
  'storageUnavailable',
  'deadlineExceeded',
];
const withBody: readonly Code[] = ['invalidRequest', 'originNotAllowed', 'requestTimeout', 'payloadTooLarge'];

/** All error codes that a route can return, its own first, without duplicates. */
export function errorCodesOf(route: ReviewRoute): Code[] {
  return [
    ...new Set([
      ...route.errors,
      ...(route.query === undefined ? [] : (['invalidRequest'] as const)),
      ...(route.auth === 'token' ? (['unauthorized'] as const) : []),
      ...(route.method === 'GET' ? [] : withBody),
      ...everywhere,
    ]),
  ];
}
