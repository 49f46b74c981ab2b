import { TokenAnswer } from './answers.ts';
import { type GitHubClient, parseAnswer } from './client.ts';
import { SourceError } from './errors.ts';
import { asApp, type Installation, type Installations, notInstalled, type RepositoryName } from './installations.ts';
import type { GitHubLimits } from './limits.ts';

/** Permissions of a token. `poll` covers all repositories of an installation, and only reading pull requests. */
export const tokenKinds = ['read', 'write', 'poll'] as const;
export type TokenKind = (typeof tokenKinds)[number];

const wishes: Readonly<Record<TokenKind, Readonly<Record<string, 'read' | 'write'>>>> = {
  read: { metadata: 'read', contents: 'read', pull_requests: 'read', issues: 'read' },
  write: { metadata: 'read', pull_requests: 'write', issues: 'write', checks: 'write' },
  poll: { metadata: 'read', pull_requests: 'read' },
};
/** Permissions that are left out where the owner has not granted them: without them some functions are missing. */
const optional = ['checks', 'issues'];

/** Routes that need an optional permission. */
const routesOf: Readonly<Record<string, string>> = { checks: '/check-runs', issues: '/issues/' };

interface Token {
  readonly value: string;
  readonly until: number;
  /** Permissions that were not granted when the token was made. */
  readonly missing: readonly string[];
}

/**
 * Installation tokens, each narrowed to its purpose and to one repository (but `poll`). Stored until shortly before they
 * expire; concurrent requests for the same token share one. Tokens have any length and are never parsed.
 */
export class Tokens {
  readonly #app: GitHubClient;
  readonly #installations: Installations;
  readonly #limits: GitHubLimits;
  readonly #kept = new Map<string, Promise<Token>>();
  readonly #minted = new Map<string, Promise<Token>>();

  constructor(app: GitHubClient, installations: Installations, limits: GitHubLimits) {
    this.#app = app;
    this.#installations = installations;
    this.#limits = limits;
  }

  /** @throws SourceError */
  read(repository: RepositoryName): Promise<string> {
    return this.get(repository, 'read');
  }

  /** @throws SourceError */
  write(repository: RepositoryName): Promise<string> {
    return this.get(repository, 'write');
  }

  /** @throws SourceError */
  async get(repository: RepositoryName, kind: TokenKind): Promise<string> {
    return (await this.#token(repository, kind)).value;
  }

  /** Forgets a token that GitHub no longer accepts. */
  async forget(repository: RepositoryName, kind: TokenKind, value: string): Promise<void> {
    const key = keyOf(await this.#installations.of(repository), repository, kind);
    const kept = await this.#kept.get(key);
    if (kept?.value === value) this.#kept.delete(key);
  }

  /**
   * Looks up the permissions again after a refusal of a route that needs an optional one: the owner may have granted it after the
   * token was made, or withdrawn it and granted it again.
   *
   * @param refused `isForbidden`: the answer was 403, which a token with the permission gets when it was withdrawn
   * @returns another token with the permission; undefined when it is still missing, or when the refusal has another reason
   */
  async regranted(
    repository: RepositoryName,
    kind: TokenKind,
    refused: { readonly value: string; readonly route: string; readonly isForbidden: boolean },
  ): Promise<string | undefined> {
    const needed = Object.keys(routesOf).filter((name) => refused.route.includes(routesOf[name] ?? name));
    if (needed.length === 0) return undefined;
    const lacks = ({ missing }: Token) => needed.some((name) => missing.includes(name));
    const kept = await this.#kept.get(keyOf(await this.#installations.of(repository), repository, kind));
    // Another request may have renewed the token already, or renews it now.
    if (kept?.value === refused.value) {
      if (!refused.isForbidden && !lacks(kept)) return undefined;
      this.#installations.forget(repository);
      await this.forget(repository, kind, refused.value);
    }
    const renewed = await this.#token(repository, kind);
    return lacks(renewed) ? undefined : renewed.value;
  }

  async #token(repository: RepositoryName, kind: TokenKind): Promise<Token> {
    const installation = await this.#installations.of(repository);
    const key = keyOf(installation, repository, kind);
    const kept = await this.#kept.get(key);
    return kept && kept.until > Date.now() ? kept : this.#minting(key, installation, repository, kind);
  }

  #minting(key: string, installation: Installation, repository: RepositoryName, kind: TokenKind): Promise<Token> {
    const running = this.#minted.get(key);
    if (running) return running;
    const token = this.#mint(installation, repository, kind).finally(() => this.#minted.delete(key));
    this.#minted.set(key, token);
    token.then(
      () => this.#keep(key, token),
      () => this.#installations.forget(repository),
    );
    return token;
  }

  #keep(key: string, token: Promise<Token>): void {
    this.#kept.delete(key);
    this.#kept.set(key, token);
    // The oldest goes first: a Map keeps the order of insertion.
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= this.#limits.cachedTokens) break;
      this.#kept.delete(oldest);
    }
  }

  async #mint(installation: Installation, repository: RepositoryName, kind: TokenKind): Promise<Token> {
    const { owner, name } = repository;
    let failure: unknown;
    for (const permissions of permissionSets(kind, installation)) {
      try {
        return await this.#ask(installation.id, kind === 'poll' ? null : name, kind, permissions);
      } catch (error) {
        failure = error;
        if (!isNotGranted(error)) break;
      }
    }
    throw failure instanceof SourceError && isNotThere(failure) ? notInstalled(owner, name) : asApp(failure);
  }

  async #ask(
    id: number,
    repository: string | null,
    kind: TokenKind,
    permissions: Readonly<Record<string, string>>,
  ): Promise<Token> {
    const { data } = await this.#app.read('POST /app/installations/{installation_id}/access_tokens', {
      installation_id: id,
      permissions,
      ...(repository !== null && { repositories: [repository] }),
    });
    const { token, expires_at } = parseAnswer(TokenAnswer, data, 'an installation token');
    const missing = Object.keys(wishes[kind]).filter((name) => permissions[name] === undefined);
    return { value: token, until: Date.parse(expires_at) - this.#limits.tokenMarginMs, missing };
  }
}

const keyOf = ({ id }: Installation, { owner, name }: RepositoryName, kind: TokenKind): string =>
  kind === 'poll' ? `${kind} ${id}` : `${kind} ${id} ${owner}/${name}`.toLowerCase();

/** Permission sets to request, best first: the granted ones when known, else all, then without those that may be missing. */
function permissionSets(kind: TokenKind, { permissions }: Installation): Readonly<Record<string, string>>[] {
  const wish = wishes[kind];
  const granted = permissions
    ? pick(wish, (name, level) => !optional.includes(name) || grants(permissions[name], level))
    : wish;
  // The owner may have withdrawn a permission since it was looked up.
  return [granted, pick(wish, (name) => name !== 'checks'), pick(wish, (name) => !optional.includes(name))];
}

const pick = (wish: Readonly<Record<string, string>>, takes: (name: string, level: string) => boolean) =>
  Object.fromEntries(Object.entries(wish).filter(([name, level]) => takes(name, level)));
const grants = (granted: string | undefined, level: string): boolean => granted === level || granted === 'write';

const isNotGranted = (error: unknown): boolean =>
  error instanceof SourceError && error.status === 422 && /permissions/i.test(error.message);
/** 404: no such installation. 422: the installation does not include this repository. */
const isNotThere = ({ status, message }: SourceError): boolean =>
  status === 404 || (status === 422 && /repositor/i.test(message));
