import type {
  Delivery,
  Repository,
  ReviewDraft,
  ReviewFinding,
  ReviewItem,
  ReviewRun,
  ReviewScope,
  SourceWrite,
  SyncJob,
} from '../../../protocol/index.ts';
import type { Api } from '../../app/api.ts';

/** A page of a list: `next` is the cursor of the following one. */
export interface Rows<T> {
  readonly rows: readonly T[];
  readonly next?: string;
}
export interface ItemDetail {
  readonly item: ReviewItem;
  /** Newest first, as the drafts. */
  readonly runs: readonly ReviewRun[];
  readonly drafts: readonly ReviewDraft[];
}
export interface BackendStatus {
  readonly version: string;
  readonly node: string;
  readonly storage: string;
  readonly writesEnabled: boolean;
  readonly webhookReady: boolean;
  readonly settingsWritable: boolean;
  readonly settingsProblem: string | null;
  readonly repositories: number;
  readonly role?: string;
  /** Whether the forge can be asked with the App's credentials. */
  readonly source?: { readonly state: string; readonly code?: string; readonly message?: string };
}
/** Work that was given up, kept to be seen. */
export interface DeadJob {
  readonly jobId: number;
  readonly kind: string;
  readonly key: string;
  readonly attempt: number;
  readonly error: string;
  readonly diedAt: string;
}
export interface SettingsView {
  readonly file: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
  readonly problem: string | null;
  readonly restartNeededFor: readonly string[];
  readonly fromEnvironment: readonly { readonly path: string; readonly variable: string }[];
}
export type FindingChange = Partial<Pick<ReviewFinding, 'status' | 'severity' | 'title' | 'body' | 'newText'>>;

type Query = Readonly<Record<string, string | number | undefined>>;
const v1 = '/api/v1';

/** A path with its query; what is undefined or empty is left out. */
export function pathOf(path: string, query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? `${v1}${path}` : `${v1}${path}?${new URLSearchParams(given)}`;
}
const of = (kind: string, id: string, doing = ''): string => `${v1}/${kind}/${encodeURIComponent(id)}${doing}`;
const ifMatch = (version: number) => ({ 'if-match': `"${version}"` });

/** The review backend's API, as far as the page uses it. Each rejects with `ApiError`. */
export function reviewApi(api: Api) {
  return {
    status: (signal?: AbortSignal) => api.get<BackendStatus>(pathOf('/status'), signal),
    items: (query: Query, signal?: AbortSignal) => api.get<Rows<ReviewItem>>(pathOf('/items', query), signal),
    item: (itemId: string, signal?: AbortSignal) => api.get<ItemDetail>(of('items', itemId), signal),
    runs: (query: Query, signal?: AbortSignal) => api.get<Rows<ReviewRun>>(pathOf('/runs', query), signal),
    drafts: (query: Query, signal?: AbortSignal) => api.get<Rows<ReviewDraft>>(pathOf('/review-drafts', query), signal),
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
    /** @param version of the draft that was looked at; absent: whatever it is */
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
