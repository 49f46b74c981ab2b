import type { ReviewStore, StoredItem, StoredRepository } from '../store/index.ts';
import { type PullAnswer, PullList } from './answers.ts';
import { type Answer, parseAnswer } from './client.ts';
import { SourceError } from './errors.ts';
import type { GitHubLimits } from './limits.ts';
import { factsOf } from './pull-facts.ts';
import type { RepositoryApi } from './repository-api.ts';

export interface SyncResult {
  /** Number of pull requests that have changed. */
  readonly changed: number;
  readonly apiCalls: number;
  /** 1 when GitHub said that nothing has changed. */
  readonly notModified: number;
}
export interface SyncOptions {
  readonly store: Pick<ReviewStore, 'upsertItem' | 'updateRepository'>;
  /** Called for each pull request that has changed, before the next page is read. */
  readonly onChange?: (item: StoredItem, headChanged: boolean) => Promise<void>;
}

const listRoute = 'GET /repos/{owner}/{repo}/pulls';
const newestFirst = { state: 'all', sort: 'updated', direction: 'desc' };

/**
 * Finds changes since the last sync. The newest page is requested under a condition, so a repository without
 * changes costs one call; else pages are read back to known items. The first time: that page, and all open items.
 * The position is stored only at the end: after a failure the same pages are read again.
 * @throws SourceError; it is stored as the repository's `lastSyncError`
 */
export async function syncRepository(
  api: RepositoryApi,
  repository: StoredRepository,
  options: SyncOptions,
): Promise<SyncResult> {
  const { repositoryKey } = repository;
  try {
    const sync = new Sync(api, repository, options);
    const { result, seen } = await sync.run();
    await options.store.updateRepository(repositoryKey, { ...seen, lastSyncAt: Date.now(), lastSyncError: null });
    return result;
  } catch (error) {
    if (error instanceof SourceError) {
      const { code, message } = error;
      await options.store.updateRepository(repositoryKey, { lastSyncError: { code, message, at: Date.now() } });
    }
    throw error;
  }
}

type Seen = Partial<Pick<StoredRepository, 'etag' | 'syncedUntil'>>;

class Sync {
  readonly #api: RepositoryApi;
  readonly #repository: StoredRepository;
  readonly #options: SyncOptions;
  #changed = 0;
  #apiCalls = 0;
  #newest: number;

  constructor(api: RepositoryApi, repository: StoredRepository, options: SyncOptions) {
    this.#api = api;
    this.#repository = repository;
    this.#options = options;
    this.#newest = repository.syncedUntil ?? 0;
  }

  async run(): Promise<{ readonly result: SyncResult; readonly seen: Seen }> {
    const { etag, syncedUntil } = this.#repository;
    let first: Answer | undefined;
    for await (const page of this.#pages({ ...newestFirst, ...(etag && { headers: { 'if-none-match': etag } }) })) {
      first ??= page;
      if (page.status === 304) return { result: this.#result(1), seen: {} };
      const isEnd = await this.#takePage(page);
      if (isEnd || syncedUntil === null) break;
    }
    if (syncedUntil === null && hasNext(first)) await this.#takeOpen();
    const seen = { etag: etagOf(first), syncedUntil: this.#newest };
    return { result: this.#result(0), seen };
  }

  #result(notModified: number): SyncResult {
    return { changed: this.#changed, apiCalls: this.#apiCalls, notModified };
  }

  async *#pages(parameters: Readonly<Record<string, unknown>>): AsyncGenerator<Answer, void> {
    for await (const page of this.#api.pages(listRoute, parameters)) {
      this.#apiCalls += 1;
      yield page;
    }
  }

  async #takeOpen(): Promise<void> {
    for await (const page of this.#pages({ ...newestFirst, state: 'open' })) await this.#takePage(page);
  }

  /** Stores a page. @returns whether it reaches back to known items; items of the same second are read again */
  async #takePage({ data }: Answer): Promise<boolean> {
    const pulls = parseAnswer(PullList, data, 'pull requests');
    // All at once: the store combines concurrent writes into one commit.
    const taken = await Promise.all(pulls.map((pull) => this.#take(pull)));
    for (const { item, changed, headChanged } of taken) {
      if (!changed) continue;
      this.#changed += 1;
      await this.#options.onChange?.(item, headChanged);
    }
    const { syncedUntil } = this.#repository;
    return pulls.some(({ updated_at }) => Date.parse(updated_at) < (syncedUntil ?? 0));
  }

  #take(pull: PullAnswer): ReturnType<ReviewStore['upsertItem']> {
    const facts = factsOf(this.#repository.repositoryKey, pull);
    this.#newest = Math.max(this.#newest, facts.updatedAt);
    return this.#options.store.upsertItem(facts);
  }
}

const hasNext = (answer: Answer | undefined): boolean => /rel="next"/.test(String(answer?.headers['link'] ?? ''));
const etagOf = (answer: Answer | undefined): string | null => {
  const etag = answer?.headers['etag'];
  return etag === undefined ? null : String(etag);
};

export type SyncOutcome = { readonly repository: StoredRepository } & (
  | { readonly result: SyncResult }
  | { readonly error: unknown }
);

/**
 * Syncs every repository once, some at a time. A failure is the outcome of its repository alone; only an owner whose rate limit
 * is used up is skipped for the rest of the round.
 */
export async function* syncAll(
  repositories: readonly StoredRepository[],
  sync: (repository: StoredRepository) => Promise<SyncResult>,
  { concurrentSyncs }: Pick<GitHubLimits, 'concurrentSyncs'>,
): AsyncGenerator<SyncOutcome, void> {
  const limited = new Map<string, SourceError>();
  const one = async (repository: StoredRepository): Promise<SyncOutcome> => {
    const owner = repository.owner.toLowerCase();
    const limit = limited.get(owner);
    if (limit) return { repository, error: limit };
    try {
      return { repository, result: await sync(repository) };
    } catch (error) {
      if (isRateLimit(error)) limited.set(owner, error);
      return { repository, error };
    }
  };
  const running = new Set<Promise<SyncOutcome>>();
  const next = async (): Promise<SyncOutcome> => {
    const [promise, outcome] = await Promise.race([...running].map(async (each) => [each, await each] as const));
    running.delete(promise);
    return outcome;
  };
  for (const repository of repositories) {
    if (running.size >= concurrentSyncs) yield await next();
    running.add(one(repository));
  }
  while (running.size > 0) yield await next();
}

const isRateLimit = (error: unknown): error is SourceError =>
  error instanceof SourceError && (error.code === 'rateLimited' || error.code === 'secondaryRateLimited');
