import type { Logger } from '../../log/index.ts';
import type { ReviewScope, SyncJob } from '../../protocol/index.ts';
import type { SettingsSource } from '../settings/index.ts';
import type { ReviewStore, StoredItem, StoredRun, StoredWrite } from '../store/index.ts';

/**
 * What the API asks others of the backend to do. Each may throw `ReviewError`, which is answered with its code; what else is
 * thrown is a bug.
 */
export interface ReviewActions {
  /** Puts a review into the queue. */
  dispatch(
    item: StoredItem,
    wish: { readonly scope: ReviewScope; readonly focus: string | null },
  ): Promise<{ readonly run: StoredRun; readonly isNew: boolean }>;
  /** Ends a run, as soon as whoever works on it sees it. */
  cancel(runId: string): Promise<StoredRun>;
  /** @param override also when the head has moved on, or something else that may be overridden stands in the way */
  publish(draftId: string, options: { readonly override: boolean }): Promise<void>;
  /** Where a person can watch a run; undefined when nobody shows it. */
  traceUrl(run: StoredRun): Promise<string | undefined>;
  discard(draftId: string): Promise<void>;
  resolveFinding(findingId: string, resolution: 'fixed' | 'dismissed', note: string | null): Promise<void>;
  /** @param repositoryKey undefined: all repositories */
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
  /** Whether clients that believe to speak to `host[:port]` speak to this backend. */
  readonly isOwn: (authority: string) => boolean;
  /** Names this process among the replicas. */
  readonly node: string;
  readonly version: string;
  /** What else the status tells of this process. */
  readonly about?: () => BackendFacts;
}

/** What the assembly knows of itself. */
export interface BackendFacts {
  readonly role: 'all' | 'web' | 'worker';
  readonly source: {
    readonly state: 'ready' | 'notConfigured' | 'failed';
    readonly code?: string;
    readonly message?: string;
  };
}
