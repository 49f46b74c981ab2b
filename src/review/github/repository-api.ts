import type { Answer, GitHubClient, Parameters } from './client.ts';
import { SourceError, type SourceErrorCode } from './errors.ts';
import type { RepositoryName } from './installations.ts';
import type { TokenKind, Tokens } from './tokens.ts';

/** Refusals that a new token may overcome, and the flaw of the old one. */
const renewals: ReadonlyMap<SourceErrorCode, 'token' | 'permission'> = new Map([
  ['unauthorized', 'token'],
  ['forbidden', 'permission'],
  ['notFound', 'permission'],
  ['rejected', 'permission'],
]);

/** GitHub's API for one repository, with tokens of one kind. */
export class RepositoryApi {
  readonly repository: RepositoryName;
  readonly #client: GitHubClient;
  readonly #tokens: Tokens;
  readonly #kind: TokenKind;

  constructor(client: GitHubClient, tokens: Tokens, repository: RepositoryName, kind: TokenKind) {
    this.#client = client;
    this.#tokens = tokens;
    this.repository = repository;
    this.#kind = kind;
  }

  read(route: string, parameters: Parameters = {}): Promise<Answer> {
    return this.#authorized(route, parameters, (all) => this.#client.read(route, all));
  }

  write(route: string, parameters: Parameters = {}): Promise<Answer> {
    return this.#authorized(route, parameters, (all) => this.#client.write(route, all));
  }

  async *pages(route: string, parameters: Parameters = {}): AsyncGenerator<Answer, void> {
    // Requested first, so that a revoked token is noticed before the first page.
    const first = await this.#authorized(route, parameters, async (all) => {
      const pages = this.#client.pages(route, all);
      return { pages, page: await pages.next() };
    });
    if (!first.page.done) yield first.page.value;
    yield* first.pages;
  }

  graphql(query: string, variables: Parameters): Promise<unknown> {
    return this.#authorized('graphql', {}, ({ headers }) => this.#client.graphql(query, variables, headers));
  }

  /**
   * Repeats a refused request with a new token, once for each reason. 401: nothing has happened, and a token may have been revoked
   * early. 403, 404, 422: the token may be older than the permission that the route needs.
   */
  async #authorized<T>(
    route: string,
    parameters: Parameters,
    ask: (parameters: Parameters & { readonly headers: Parameters }) => Promise<T>,
  ): Promise<T> {
    const { owner, name } = this.repository;
    const attempt = async (token: string) => {
      const headers = { ...(parameters['headers'] as Parameters | undefined), authorization: `token ${token}` };
      return ask({ owner, repo: name, ...parameters, headers });
    };
    let token = await this.#tokens.get(this.repository, this.#kind);
    const reasons = new Set<string>();
    for (;;) {
      try {
        return await attempt(token);
      } catch (error) {
        const reason = error instanceof SourceError ? renewals.get(error.code) : undefined;
        if (!(error instanceof SourceError) || reason === undefined || reasons.has(reason)) throw error;
        reasons.add(reason);
        const renewed = await this.#renewed(token, route, error);
        if (renewed === undefined) throw error;
        token = renewed;
      }
    }
  }

  /** @returns undefined: a new token would be refused, too */
  async #renewed(value: string, route: string, { code }: SourceError): Promise<string | undefined> {
    if (code !== 'unauthorized') {
      const refused = { value, route, isForbidden: code === 'forbidden' };
      return this.#tokens.regranted(this.repository, this.#kind, refused);
    }
    await this.#tokens.forget(this.repository, this.#kind, value);
    return this.#tokens.get(this.repository, this.#kind);
  }
}
