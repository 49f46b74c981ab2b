import type {
  BackendStatus,
  DashboardLink,
  DeadJob,
  Delivery,
  DraftHunks,
  ItemDetail,
  Repository,
  ReviewDraft,
  ReviewFinding,
  ReviewItem,
  ReviewRun,
  ReviewScope,
  SettingsView,
  SourceWrite,
  SyncJob,
} from '../../../protocol/index.ts';
import type { Api } from '../../app/api.ts';

/** A page of a list: `next` is the cursor of the following one. */
export interface Rows<T> {
  readonly rows: readonly T[];
  readonly next?: string;
}
export type { BackendStatus, DeadJob, ItemDetail, SettingsView };
export type FindingChange = Partial<Pick<ReviewFinding, 'status' | 'severity' | 'title' | 'body' | 'newText'>>;

type Query = Readonly<Record<string, string | number | undefined>>;
const v1 = '/api/v1';

/** A path with its query, without undefined and empty values. */
export function pathOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? `${v1}${path}` : `${v1}${path}?${new URLSearchParams(given)}`;
}
const of = (kind: string, id: string, doing = ''): string => `${v1}/${kind}/${encodeURIComponent(id)}${doing}`;
const ifMatch = (version: number) => ({ 'if-match': `"${version}"` });

/** Part of the review backend's API that the page uses. Each call rejects with `ApiError`. */
export function reviewApi(api: Api) {
  return {
    status: (signal?: AbortSignal) => api.get<BackendStatus>(pathOf('/status'), signal),
    items: (query: Query, signal?: AbortSignal) => api.get<Rows<ReviewItem>>(pathOf('/items', query), signal),
    item: (itemId: string, signal?: AbortSignal) => api.get<ItemDetail>(of('items', itemId), signal),
    runs: (query: Query, signal?: AbortSignal) => api.get<Rows<ReviewRun>>(pathOf('/runs', query), signal),
    drafts: (query: Query, signal?: AbortSignal) => api.get<Rows<ReviewDraft>>(pathOf('/review-drafts', query), signal),
    /** Hunks by finding. */
    hunks: async (draftId: string, signal?: AbortSignal) =>
      (await api.get<DraftHunks>(of('review-drafts', draftId, '/hunks'), signal)).hunks,
    /** Address of the Dashboard with the trace of the agent. */
    traceUrl: async (runId: string, signal?: AbortSignal) =>
      (await api.get<DashboardLink>(of('runs', runId, '/trace'), signal)).url,
    writes: (query: Query, signal?: AbortSignal) => api.get<Rows<SourceWrite>>(pathOf('/source-writes', query), signal),
    deliveries: (query: Query, signal?: AbortSignal) => api.get<Rows<Delivery>>(pathOf('/deliveries', query), signal),
    sources: (signal?: AbortSignal) => api.get<readonly Repository[]>(pathOf('/sources'), signal),
    syncJobs: (limit: number, signal?: AbortSignal) =>
      api.get<readonly SyncJob[]>(pathOf('/sources/sync-jobs', { limit }), signal),
    deadJobs: (limit: number, signal?: AbortSignal) =>
      api.get<readonly DeadJob[]>(pathOf('/dead-jobs', { limit }), signal),
    settings: (signal?: AbortSignal) => api.get<SettingsView>(pathOf('/settings/diagnostics'), signal),

    /** @param repositoryKey absent: all of them */
    sync: (repositoryKey?: string) =>
      api.send<SyncJob>('POST', pathOf('/sources/sync-jobs'), repositoryKey === undefined ? {} : { repositoryKey }),
    dispatch: (itemId: string, wish: { readonly scope: ReviewScope; readonly focus?: string }) =>
      api.send<{ readonly run: ReviewRun; readonly isNew: boolean }>('POST', of('items', itemId, '/dispatch'), wish),
    pause: (itemId: string, isPaused: boolean) =>
      api.send<ReviewItem>('POST', of('items', itemId, isPaused ? '/pause' : '/resume')),
    cancel: (runId: string) => api.send<ReviewRun>('POST', of('runs', runId, '/cancel')),
    editSummary: ({ draftId, version }: Pick<ReviewDraft, 'draftId' | 'version'>, summary: string) =>
      api.send<ReviewDraft>('PATCH', of('review-drafts', draftId), { summary }, ifMatch(version)),
    publish: (draftId: string, override: boolean) =>
      api.send<ReviewDraft>('POST', of('review-drafts', draftId, '/publish'), { override }),
    discard: (draftId: string) => api.send<ReviewDraft>('POST', of('review-drafts', draftId, '/discard')),
    /** @param version of the draft that the user read; absent: any */
    editFinding: (findingId: string, change: FindingChange, version?: number) =>
      api.send<ReviewFinding>(
        'PATCH',
        of('findings', findingId),
        change,
        version === undefined ? undefined : ifMatch(version),
      ),
    resolve: (findingId: string, resolution: 'fixed' | 'dismissed', note: string) =>
      api.send<ReviewFinding>('POST', of('findings', findingId, '/resolve'), {
        resolution,
        ...(note !== '' && { note }),
      }),
    retryWrite: (writeId: string) => api.send<SourceWrite>('POST', of('source-writes', writeId, '/retry')),
  };
}
export type ReviewApi = ReturnType<typeof reviewApi>;
