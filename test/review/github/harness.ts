import type { Test } from 'tap';
import { createLogger } from '../../../src/log/index.ts';
import {
  type GitHubLimits,
  type GitHubSettings,
  GitHubSource,
  type GitHubSourceOptions,
} from '../../../src/review/github/index.ts';
import { openReviewStore, type ReviewStore } from '../../../src/review/store/index.ts';
import type { StoredRepository, StoredWrite } from '../../../src/review/store/types.ts';
import { Forge, type ForgeOptions, type ForgePull, type ForgeRepository } from '../forge/index.ts';

export const patch = '@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n+more\n three';
export const files = ['a.ts', 'b.ts'].map((filename) => ({ filename, status: 'modified', patch }));

/** Everything a test needs is ended with it. */
export interface World {
  readonly forge: Forge;
  readonly repo: ForgeRepository;
  readonly pull: ForgePull;
  readonly source: GitHubSource;
  readonly store: ReviewStore;
  /** Lines of the log. */
  readonly log: readonly string[];
  another(
    settings?: Partial<GitHubSettings>,
    limits?: Partial<GitHubLimits>,
    onChange?: GitHubSourceOptions['onChange'],
  ): GitHubSource;
}

/** Waits are as short as they can be; nothing else differs from the real ones. */
export const quick: Partial<GitHubLimits> = { writeSpacingMs: 0, secondMs: 1, requestTimeoutMs: 20_000 };

export async function world(t: Test, limits: Partial<GitHubLimits> = {}, options: ForgeOptions = {}): Promise<World> {
  const forge = await new Forge(options).start();
  const repo = forge.addRepository('acme', 'shop');
  const pull = await forge.openPull(repo, { number: 7, files });
  const log: string[] = [];
  const logger = createLogger({ name: 'test', level: 'debug', stream: { write: (text) => log.push(text) } });
  const store = await openReviewStore({ directory: t.testdir(), owner: 'test', logger });
  const sources: GitHubSource[] = [];
  const another: World['another'] = (settings = {}, more = {}, onChange = undefined) => {
    const made = new GitHubSource({
      settings: {
        Endpoint: forge.apiUrl,
        AppId: forge.app.id,
        PrivateKey: forge.app.privateKey,
        PrivateKeyPath: '',
        InstallationProfiles: [],
        ...settings,
      },
      store,
      logger,
      ...(onChange && { onChange }),
      limits: { ...quick, ...limits, ...more },
    });
    sources.push(made);
    return made;
  };
  t.teardown(async () => {
    for (const source of sources) source.close();
    await store.close();
    await forge.stop();
    if (forge.mistakes.length > 0) throw new Error(`The forge did not answer as GitHub does: ${forge.mistakes[0]}`);
  });
  return { forge, repo, pull, source: another(), store, log, another };
}

/**
 * Until the end of `t` no request runs out of time because the machine is busy: the time limit of the one that was begun last is
 * reached when `reach` is called.
 */
export function timeLimits(t: Test): { readonly reach: () => void } {
  let newest = new AbortController();
  t.capture(AbortSignal, 'timeout', () => {
    newest = new AbortController();
    return newest.signal;
  });
  return { reach: () => newest.abort(new DOMException('The time is over', 'TimeoutError')) };
}

/** The row of a repository of the forge. */
export async function storedRepository({ store }: World, name = 'shop', owner = 'acme'): Promise<StoredRepository> {
  const repositoryKey = `github:github.com/${owner}/${name}`;
  const known = await store.repositories();
  if (!known.some((each) => each.repositoryKey === repositoryKey)) {
    const wanted = { repositoryKey, instance: 'github.com', owner, name, autoReview: false };
    await store.syncRepositories([...known.filter(({ isEnabled }) => isEnabled), wanted]);
  }
  const found = await store.repository(repositoryKey);
  if (!found) throw new Error('The store lost a repository');
  return found;
}

/** A write as the outbox keeps it. */
export function write(kind: StoredWrite['kind'], request: Record<string, unknown>, runId = 'run-1'): StoredWrite {
  return {
    writeId: 'write-1',
    kind,
    dedupeKey: `${kind}:${runId}`,
    repositoryKey: 'github:github.com/acme/shop',
    runId,
    request: { owner: 'acme', name: 'shop', ...request },
    status: 'pending',
    attempts: 0,
    response: null,
    lastError: null,
    createdAt: 0,
    sentAt: null,
  };
}

export const comment = (findingId: string, line: number, more: Record<string, unknown> = {}) => ({
  path: 'a.ts',
  body: `About line ${line}`,
  line,
  side: 'RIGHT',
  findingId,
  ...more,
});
