import type { Answer, GitHubClient, Parameters } from './client.ts';
import { SourceError, type SourceErrorCode } from './errors.ts';
import type { RepositoryName } from './installations.ts';
import type { TokenKind, Tokens } from './tokens.ts';

const permissionRefusals: ReadonlySet<SourceErrorCode> = new Set(['forbidden', 'notFound', 'rejected']);

/** GitHub, as it is asked about one repository with tokens of one kind. */
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
   * Repeats a refused request once with a new token. 401: nothing has happened, and a token may have been revoked early. 403, 404, 422:
   * the token may be older than the permission that the route needs.
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
    const token = await this.#tokens.get(this.repository, this.#kind);
    try {
      return await attempt(token);
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      if (permissionRefusals.has(error.code)) {
        const regranted = await this.#tokens.regranted(this.repository, this.#kind, { value: token, route });
        if (regranted !== undefined) return attempt(regranted);
      }
      if (error.code !== 'unauthorized') throw error;
      await this.#tokens.forget(this.repository, this.#kind, token);
      return attempt(await this.#tokens.get(this.repository, this.#kind));
    }
  }
}
