import { createTransport, type Fetch, type HookFacts } from '../../github/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ItemFacts, ReviewStore, StoredItem, StoredRepository, StoredWrite } from '../store/index.ts';
import { PermissionAnswer, PullAnswer } from './answers.ts';
import { type AppFacts, loadPrivateKey, readApp, readHook } from './app.ts';
import { GitHubClient, parseAnswer } from './client.ts';
import {
  type FailedDelivery,
  listFailedDeliveries,
  type ReconcileResult,
  type ReconcileState,
  reconcileDeliveries,
  redeliver,
} from './deliveries.ts';
import { SourceError } from './errors.ts';
import { type InstallationProfile, Installations, type RepositoryName } from './installations.ts';
import { type GitHubLimits, githubLimits } from './limits.ts';
import { removeDuplicates } from './publish/duplicates.ts';
import { type Response, repositoryOf, sendWrite } from './publish/send.ts';
import { noFence, type ReviewFence, type Target } from './publish/target.ts';
import { factsOf } from './pull-facts.ts';
import { RepositoryApi } from './repository-api.ts';
import { type SyncOutcome, type SyncResult, syncAll, syncRepository } from './sync.ts';
import { type TokenKind, Tokens } from './tokens.ts';

/** Fields of `BackendSettings.GitHub`. */
export interface GitHubSettings {
  readonly Endpoint: string;
  readonly AppId?: string | number | undefined;
  readonly PrivateKey: string;
  readonly PrivateKeyPath: string;
  readonly InstallationProfiles: readonly InstallationProfile[];
}
export interface GitHubSourceOptions {
  readonly settings: GitHubSettings;
  readonly store: Pick<ReviewStore, 'upsertItem' | 'updateRepository'>;
  readonly logger: Logger;
  /** Called for each pull request that a sync found changed. */
  readonly onChange?: (item: StoredItem, headChanged: boolean) => Promise<void>;
  readonly limits?: Partial<GitHubLimits>;
}
export type RepositoryId = RepositoryName & { readonly repositoryKey: string };

/** GitHub, as one App. Every method rejects with SourceError. */
export class GitHubSource {
  readonly tokens: Tokens;
  readonly #options: GitHubSourceOptions;
  readonly #limits: GitHubLimits;
  readonly #logger: Logger;
  readonly #app: GitHubClient;
  readonly #installations: Installations;
  readonly #clients = new Map<number, GitHubClient>();
  readonly #stop = new AbortController();
  readonly #fetch: Fetch;
  /** Recently read pull requests, the oldest first. */
  readonly #pulls = new Map<string, { readonly at: number; readonly facts: ItemFacts | 'gone' }>();
  #requests = 0;
  #facts: Promise<AppFacts> | undefined;

  /** @throws SourceError when the App id or its key is missing or unfit */
  constructor(options: GitHubSourceOptions) {
    const { settings, logger } = options;
    const { AppId, Endpoint, InstallationProfiles } = settings;
    if (AppId === undefined) throw new SourceError('appIdMissing', 'Set GitHub.AppId');
    const { pem, warning } = loadPrivateKey(settings);
    if (warning) logger.warn(warning);
    this.#options = options;
    this.#limits = { ...githubLimits, ...options.limits };
    this.#logger = logger;
    const onRequest = () => {
      this.#requests += 1;
    };
    this.#fetch = createTransport(Endpoint, this.#limits, { stop: this.#stop.signal, onRequest });
    this.#app = this.#client({ app: { appId: AppId, privateKey: pem } });
    this.#installations = new Installations(this.#app, InstallationProfiles, this.#limits);
    this.tokens = new Tokens(this.#app, this.#installations, this.#limits);
  }

  /** Number of requests since the start. */
  get requests(): number {
    return this.#requests;
  }

  /** Ends requests in progress; every later call rejects. */
  close(): void {
    this.#stop.abort();
  }

  #client(own: { readonly app?: { readonly appId: string | number; readonly privateKey: string } }): GitHubClient {
    const { settings } = this.#options;
    return new GitHubClient({
      endpoint: settings.Endpoint,
      limits: this.#limits,
      logger: this.#logger,
      fetch: this.#fetch,
      ...own,
    });
  }

  async #api(repository: RepositoryName, kind: TokenKind): Promise<RepositoryApi> {
    const { id } = await this.#installations.of(repository);
    const client = this.#clients.get(id) ?? this.#client({});
    this.#clients.set(id, client);
    return new RepositoryApi(client, this.tokens, { owner: repository.owner, name: repository.name }, kind);
  }

  /**
   * Reads a pull request; `gone`: it is missing, or not visible to us.
   *
   * @param maxAgeMs highest age of a cached response: the request for a review has just read it
   */
  async readPull(repository: RepositoryId, number: number, maxAgeMs = 0): Promise<ItemFacts | 'gone'> {
    const key = `${repository.repositoryKey}#${number}`;
    const known = this.#pulls.get(key);
    if (known && performance.now() - known.at <= maxAgeMs) return known.facts;
    const at = performance.now();
    const facts = await this.#readPull(repository, number);
    this.#pulls.delete(key);
    this.#pulls.set(key, { at, facts });
    const [oldest] = this.#pulls.keys();
    if (oldest !== undefined && this.#pulls.size > this.#limits.pullsKept) this.#pulls.delete(oldest);
    return facts;
  }

  async #readPull(repository: RepositoryId, number: number): Promise<ItemFacts | 'gone'> {
    const api = await this.#api(repository, 'poll');
    try {
      const { data } = await api.read('GET /repos/{owner}/{repo}/pulls/{pull_number}', { pull_number: number });
      return factsOf(repository.repositoryKey, parseAnswer(PullAnswer, data, 'a pull request'));
    } catch (error) {
      if (error instanceof SourceError && error.code === 'notFound') return 'gone';
      throw error;
    }
  }

  /** Whether `login` may write to the repository. `author_association` is not enough: a member may have read access only. */
  async isCollaborator(repository: RepositoryName, login: string): Promise<boolean> {
    const api = await this.#api(repository, 'read');
    try {
      const { data } = await api.read('GET /repos/{owner}/{repo}/collaborators/{username}/permission', {
        username: login,
      });
      return ['admin', 'write'].includes(parseAnswer(PermissionAnswer, data, 'a permission').permission);
    } catch (error) {
      if (error instanceof SourceError && error.code === 'notFound') return false;
      throw error;
    }
  }

  /** Polls one repository for changes and stores them. */
  async syncRepository(repository: StoredRepository): Promise<SyncResult> {
    const { store, onChange } = this.#options;
    const { installationId, repositoryKey } = repository;
    const options = { store, ...(onChange && { onChange }) };
    try {
      const { id } = await this.#installations.of(repository);
      if (id !== installationId) await store.updateRepository(repositoryKey, { installationId: id });
    } catch (error) {
      if (error instanceof SourceError) await this.#keepError(repositoryKey, error);
      throw error;
    }
    return await syncRepository(await this.#api(repository, 'poll'), repository, options);
  }

  async #keepError(repositoryKey: string, { code, message }: SourceError): Promise<void> {
    await this.#options.store.updateRepository(repositoryKey, { lastSyncError: { code, message, at: Date.now() } });
  }

  /** Syncs every repository once, some at a time; a failure does not stop the others. */
  syncAll(repositories: readonly StoredRepository[]): AsyncGenerator<SyncOutcome, void> {
    return syncAll(repositories, (repository) => this.syncRepository(repository), this.#limits);
  }

  /**
   * Sends a write of the outbox; a repeated one takes effect once on GitHub.
   *
   * @param fence stores the id of a review that was begun; without it, exactly-once relies on GitHub's lists
   * @returns GitHub's result
   */
  async send(write: StoredWrite, fence: ReviewFence = noFence): Promise<Response> {
    return sendWrite(await this.#targetOf(write, fence), write);
  }

  /** Removes the duplicates that late requests made of a write that was sent. @returns how many were removed */
  async removeDuplicates(write: StoredWrite): Promise<number> {
    return removeDuplicates(await this.#targetOf(write, noFence), write);
  }

  async #targetOf({ request, runId, dedupeKey, attempts }: StoredWrite, fence: ReviewFence): Promise<Target> {
    const api = await this.#api(repositoryOf(request), 'write');
    const app = await this.#appOnce();
    return { api, app, limits: this.#limits, runId, dedupeKey, wasTried: attempts > 0, fence };
  }

  /** Acknowledges a command: 👀 on its comment. */
  async acknowledge(repository: RepositoryName, commentId: number): Promise<void> {
    const { owner, name } = repository;
    const write = { kind: 'reaction', request: { owner, name, commentId, content: 'eyes' } } as const;
    const api = await this.#api(repository, 'write');
    const target = {
      api,
      app: await this.#appOnce(),
      limits: this.#limits,
      runId: null,
      dedupeKey: '',
      fence: noFence,
    };
    await sendWrite({ ...target, wasTried: false }, write);
  }

  /** Reads the App again, for diagnostics. */
  async app(): Promise<AppFacts & { readonly hook: HookFacts }> {
    const [facts, hook] = await Promise.all([readApp(this.#app), readHook(this.#app)]);
    this.#facts = Promise.resolve(facts);
    return { ...facts, hook };
  }

  async #appOnce(): Promise<AppFacts> {
    this.#facts ??= readApp(this.#app);
    try {
      return await this.#facts;
    } catch (error) {
      this.#facts = undefined;
      throw error;
    }
  }

  /** Deliveries that did not arrive, newest first. @param since - milliseconds */
  listFailedDeliveries(since: number): Promise<readonly FailedDelivery[]> {
    return listFailedDeliveries(this.#app, since, this.#limits);
  }

  /** @returns false: GitHub no longer knows the delivery */
  redeliver(id: string): Promise<boolean> {
    return redeliver(this.#app, id);
  }

  /** Searches once for missed deliveries; the caller stores the state. */
  reconcile(state: ReconcileState, now: number): Promise<ReconcileResult> {
    return reconcileDeliveries(this.#app, state, now, this.#limits);
  }
}
