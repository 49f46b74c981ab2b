import { InstallationAnswer } from './answers.ts';
import { type GitHubClient, parseAnswer } from './client.ts';
import { SourceError } from './errors.ts';
import type { GitHubLimits } from './limits.ts';

/** Name of a repository on the source. */
export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
}
/** Configured installation of an owner's repositories. */
export interface InstallationProfile {
  readonly Owner: string;
  readonly InstallationId: number;
}
export interface Installation {
  readonly id: number;
  /** Permissions that the owner granted; null: not known, the id comes from a profile. */
  readonly permissions: Readonly<Record<string, string>> | null;
}

/** Installations by owner: from a profile, or else looked up and cached for a time. */
export class Installations {
  readonly #app: GitHubClient;
  readonly #profiles: ReadonlyMap<string, number>;
  readonly #limits: GitHubLimits;
  readonly #known = new Map<string, { readonly found: Promise<Installation>; readonly until: number }>();

  constructor(app: GitHubClient, profiles: readonly InstallationProfile[], limits: GitHubLimits) {
    this.#app = app;
    this.#profiles = new Map(profiles.map(({ Owner, InstallationId }) => [Owner.toLowerCase(), InstallationId]));
    this.#limits = limits;
  }

  /** @throws SourceError appNotInstalled, installationSuspended */
  of(repository: RepositoryName): Promise<Installation> {
    const owner = repository.owner.toLowerCase();
    const profile = this.#profiles.get(owner);
    if (profile !== undefined) return Promise.resolve({ id: profile, permissions: null });
    const known = this.#known.get(owner);
    if (known && known.until > Date.now()) return known.found;
    const found = this.#look(repository);
    this.#known.set(owner, { found, until: Date.now() + this.#limits.installationCacheMs });
    // A failure reaches the waiting callers and is not cached: the next call tries again.
    found.catch(() => this.forget(repository));
    return found;
  }

  /** Forgets the installation of an owner that installed the App again or suspended it; the next call queries it again. */
  forget({ owner }: RepositoryName): void {
    this.#known.delete(owner.toLowerCase());
  }

  async #look({ owner, name }: RepositoryName): Promise<Installation> {
    const { data } = await this.#app
      .read('GET /repos/{owner}/{repo}/installation', { owner, repo: name })
      .catch((error: unknown) => {
        throw error instanceof SourceError && error.code === 'notFound' ? notInstalled(owner, name) : asApp(error);
      });
    const { id, permissions, suspended_at } = parseAnswer(InstallationAnswer, data, 'an installation');
    if (suspended_at) {
      throw new SourceError('installationSuspended', `The installation of the App at ${owner} is suspended`, 403);
    }
    return { id, permissions };
  }
}

export const notInstalled = (owner: string, name: string) =>
  new SourceError('appNotInstalled', `The App is not installed for ${owner}/${name}`, 404);

/** Converts a 401 to the App itself: its id or its key is wrong, and stays so. */
export function asApp(error: unknown): unknown {
  if (!(error instanceof SourceError) || error.code !== 'unauthorized') return error;
  return new SourceError(
    'appCredentialsInvalid',
    `GitHub does not accept the App's id and key (${error.message})`,
    401,
  );
}
