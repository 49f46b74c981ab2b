import type { Reply, RequestContext } from '../../http/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ReviewScope, SyncJob } from '../../protocol/index.ts';
import type { SettingsSource } from '../settings/index.ts';
import type { ReviewStore, StoredItem, StoredRun, StoredWrite } from '../store/index.ts';

/** Actions of other parts that the API calls. Each can throw `ReviewError`, which becomes the response; any other error is a bug. */
export interface ReviewActions {
  /** Queues a review. */
  dispatch(
    item: StoredItem,
    request: { readonly scope: ReviewScope; readonly focus: string | null },
  ): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /** Requests the cancellation of a run; the holder of its lease ends it. */
  cancel(runId: string): Promise<StoredRun>;
  /** @param options.override publishes despite a moved head or another obstacle that can be overridden */
  publish(draftId: string, options: { readonly override: boolean }): Promise<void>;
  /** Address of the page with the trace of a run; undefined without one. */
  traceUrl(run: StoredRun): Promise<string | undefined>;
  discard(draftId: string): Promise<void>;
  resolveFinding(findingId: string, resolution: 'fixed' | 'dismissed', note: string | null): Promise<void>;
  /** Queues a sync. @param repositoryKey undefined for all repositories */
  sync(repositoryKey: string | undefined): Promise<SyncJob>;
  retryWrite(write: StoredWrite): Promise<void>;
}

export interface ReviewApiOptions {
  readonly store: ReviewStore;
  readonly settings: SettingsSource;
  readonly actions: ReviewActions;
  readonly logger: Logger;
  /** Bearer token of the API. */
  readonly token: () => string;
  /** Whether `host[:port]` is an address of this backend. */
  readonly isOwn: (authority: string) => boolean;
  /** Name of this process among the replicas. */
  readonly node: string;
  readonly version: string;
  /** Further facts in the status. */
  readonly about?: () => BackendFacts;
  /** Reason why this process does no work at present; undefined while it works. */
  readonly problem?: () => string | undefined;
}

/** Role of this process and state of its source. */
export interface BackendFacts {
  readonly role: 'all' | 'web' | 'worker';
  readonly source: {
    readonly state: 'ready' | 'notConfigured' | 'failed';
    readonly code?: string;
    readonly message?: string;
  };
}

/** Options that handlers use. */
export type Services = Pick<
  ReviewApiOptions,
  'store' | 'settings' | 'actions' | 'logger' | 'node' | 'version' | 'about' | 'problem'
>;

export type ApiHandler = (context: RequestContext) => Reply | Promise<Reply>;
