import type { Logger } from '../../log/index.ts';
import { GitHubSource, type GitHubSourceOptions, SourceError } from '../github/index.ts';
import type { JobSource } from '../jobs/index.ts';
import type { BackendSettings, SettingsSource } from '../settings/index.ts';
import type { ReviewStore } from '../store/index.ts';

export interface LiveSourceOptions {
  readonly settings: Pick<SettingsSource, 'current' | 'subscribe'>;
  readonly store: ReviewStore;
  readonly logger: Logger;
  readonly onChange: NonNullable<GitHubSourceOptions['onChange']>;
  readonly limits?: GitHubSourceOptions['limits'];
}

export type SourceState =
  | { readonly state: 'ready' }
  | { readonly state: 'notConfigured' | 'failed'; readonly code: string; readonly message: string };

/** Settings of a source. */
const parts = ({ GitHub }: BackendSettings) => {
  const { Endpoint, AppId, PrivateKey, PrivateKeyPath, InstallationProfiles } = GitHub;
  return { Endpoint, AppId, PrivateKey, PrivateKeyPath, InstallationProfiles };
};

/** Source for the current settings, replaced when they change. Without credentials every call fails with the missing setting. */
export class LiveSource implements JobSource {
  readonly #options: LiveSourceOptions;
  readonly #unsubscribe: () => void;
  #source: GitHubSource | undefined;
  #problem: SourceError | undefined;
  #madeFrom = '';
  #earlierRequests = 0;

  constructor(options: LiveSourceOptions) {
    this.#options = options;
    this.#make();
    this.#unsubscribe = options.settings.subscribe(() => {
      if (JSON.stringify(parts(options.settings.current)) !== this.#madeFrom) this.#make();
    });
  }

  get state(): SourceState {
    if (!this.#problem) return { state: 'ready' };
    const { code, message } = this.#problem;
    const isMissing = code === 'appIdMissing' || code === 'privateKeyMissing';
    return { state: isMissing ? 'notConfigured' : 'failed', code, message };
  }

  /** Number of requests since the start of the process. */
  get requests(): number {
    return this.#earlierRequests + (this.#source?.requests ?? 0);
  }

  get tokens(): GitHubSource['tokens'] {
    return this.#now().tokens;
  }

  readonly readPull: GitHubSource['readPull'] = async (...given) => this.#now().readPull(...given);
  readonly isCollaborator: GitHubSource['isCollaborator'] = async (...given) => this.#now().isCollaborator(...given);
  readonly send: GitHubSource['send'] = async (...given) => this.#now().send(...given);
  readonly removeDuplicates: GitHubSource['removeDuplicates'] = async (...given) =>
    this.#now().removeDuplicates(...given);
  readonly reconcile: GitHubSource['reconcile'] = async (...given) => this.#now().reconcile(...given);
  readonly syncAll: GitHubSource['syncAll'] = (...given) => this.#now().syncAll(...given);
  readonly clearInstallations = (): void => this.#make();

  close(): void {
    this.#unsubscribe();
    this.#source?.close();
  }

  #now(): GitHubSource {
    if (this.#source) return this.#source;
    throw this.#problem ?? new SourceError('appIdMissing', 'Set GitHub.AppId');
  }

  /** Replaces the source. Calls in progress on the earlier one fail with a retryable error. */
  #make(): void {
    const { settings, store, logger, onChange, limits } = this.#options;
    const from = parts(settings.current);
    this.#madeFrom = JSON.stringify(from);
    this.#earlierRequests = this.requests;
    this.#source?.close();
    this.#source = undefined;
    this.#problem = undefined;
    try {
      this.#source = new GitHubSource({ settings: from, store, logger, onChange, ...(limits && { limits }) });
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      this.#problem = error;
      logger.warn('GitHub source not ready: correct the settings', { code: error.code, problem: error.message });
    }
  }
}
