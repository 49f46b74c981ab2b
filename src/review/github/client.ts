import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/core';
import { retry } from '@octokit/plugin-retry';
import { throttling } from '@octokit/plugin-throttling';
import * as v from 'valibot';
import { apiVersion, type Fetch } from '../../github/index.ts';
import { Limit } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { plain, SourceError, toSourceError } from './errors.ts';
import type { GitHubLimits } from './limits.ts';

const Client = Octokit.plugin(throttling, retry);

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number | undefined>>;
  readonly data: unknown;
}
export type Parameters = Readonly<Record<string, unknown>>;

const headersOf = ({ headers }: Parameters): Parameters => (headers ?? {}) as Parameters;

export interface ClientOptions {
  readonly endpoint: string;
  readonly limits: GitHubLimits;
  readonly logger: Logger;
  readonly fetch: Fetch;
  /** Credentials of the App, whose client signs a JWT; absent: every request brings its token. */
  readonly app?: { readonly appId: string | number; readonly privateKey: string };
}

/**
 * Sends requests to GitHub as one installation, or as the App. Reads are retried automatically. Writes are not, because GitHub
 * has no idempotency keys, and go out one after the other.
 */
export class GitHubClient {
  readonly #octokit: InstanceType<typeof Client>;
  readonly #limits: GitHubLimits;
  /** GitHub's secondary limits ask for one write at a time, and a pause between. */
  readonly #writes = new Limit();
  #nextWriteAt = 0;
  readonly #graphqlUrl: string;

  constructor({ endpoint, limits, logger, fetch, app }: ClientOptions) {
    const log = octokitLog(logger);
    this.#limits = limits;
    this.#graphqlUrl = graphqlUrlOf(endpoint);
    this.#octokit = new Client({
      baseUrl: endpoint.replace(/(?<!\/)\/+$/, ''),
      userAgent: 'oratorio',
      log,
      request: { fetch, log },
      ...(app && { authStrategy: createAppAuth, auth: { ...app, log } }),
      // 429 and 403 belong to the throttling plugin.
      retry: { retries: limits.retries, retryAfterBaseValue: limits.secondMs, doNotRetry: [...refusals] },
      throttle: { ...throttle(limits, logger), ...unspaced },
    });
  }

  /** @throws SourceError */
  read(route: string, parameters: Parameters = {}): Promise<Answer> {
    return this.#send(route, parameters);
  }

  /** Sends a write. Never retried automatically, except after a rate limit: then nothing has happened. @throws SourceError */
  write(route: string, parameters: Parameters = {}): Promise<Answer> {
    return this.#writes.run('', async () => {
      const pause = this.#nextWriteAt - performance.now();
      if (pause > 0) await setTimeout(pause);
      try {
        return await this.#send(route, { ...parameters, request: { retries: 0 } });
      } finally {
        this.#nextWriteAt = performance.now() + this.#limits.writeSpacingMs;
      }
    });
  }

  /** Every page of a list, by the `Link` header. @throws SourceError */
  async *pages(route: string, parameters: Parameters = {}): AsyncGenerator<Answer, void> {
    let answer = await this.read(route, { per_page: this.#limits.pageSize, ...parameters });
    yield answer;
    // The condition was on the first page only.
    const { 'if-none-match': _, ...headers } = headersOf(parameters);
    for (let next = nextPage(answer); next !== undefined; next = nextPage(answer)) {
      answer = await this.read(`GET ${next}`, { headers });
      yield answer;
    }
  }

  /** @param query - reads, or may be repeated without harm @returns `data` of the answer @throws SourceError */
  async graphql(query: string, variables: Parameters, headers: Parameters): Promise<unknown> {
    const { data } = await this.#send(`POST ${this.#graphqlUrl}`, { query, variables, headers });
    const answer = parseAnswer(GraphqlAnswer, data, 'GraphQL');
    const [first] = answer.errors ?? [];
    if (!first) return answer.data;
    const code = first.type === 'NOT_FOUND' ? 'notFound' : first.type === 'FORBIDDEN' ? 'forbidden' : 'rejected';
    throw new SourceError(code, `GitHub refused a query: ${plain(first.message)}`, 200);
  }

  async #send(route: string, parameters: Parameters): Promise<Answer> {
    try {
      return await this.#octokit.request(route, {
        ...parameters,
        headers: { 'x-github-api-version': apiVersion, ...headersOf(parameters) },
      });
    } catch (error) {
      const answer = notModified(error);
      if (answer) return answer;
      throw toSourceError(error);
    }
  }
}

const GraphqlAnswer = v.object({
  data: v.nullish(v.unknown()),
  errors: v.optional(v.array(v.object({ type: v.optional(v.string()), message: v.string() }))),
});

const refusals = [400, 401, 403, 404, 409, 410, 422, 429, 451];

/** Enterprise has `/api/v3` for REST and `/api/graphql`. */
function graphqlUrlOf(endpoint: string): string {
  return `${endpoint.replace(/(?<!\/)\/+$/, '').replace(/\/v3$/, '')}/graphql`;
}

function throttle({ longestWaitSeconds, secondMs }: GitHubLimits, logger: Logger) {
  const waits = (kind: string) => (seconds: number, _request: unknown, _octokit: unknown, attempts: number) => {
    const isWaitedFor = seconds <= longestWaitSeconds && attempts < 1;
    logger.warn('GitHub limits our rate', { kind, seconds, isWaitedFor });
    return isWaitedFor;
  };
  return {
    // Limits are per installation, so each client counts for itself.
    id: randomUUID(),
    retryAfterBaseValue: secondMs,
    onRateLimit: waits('primary'),
    onSecondaryRateLimit: waits('secondary'),
  };
}

/** Replaces the plugin's spacing, which covers only the beginnings of writes, and comments by three seconds, by `write`. */
const passing = {
  key: () => ({ schedule: <T>(_: unknown, work: (...args: unknown[]) => T, ...args: unknown[]) => work(...args) }),
};
const unspaced: object = { write: passing, notifications: passing };

/** Octokit passes whole requests to its log: only the message is logged. */
function octokitLog(logger: Logger) {
  const say = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string) => logger[level](plain(message));
  return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
}

const NotModified = v.object({
  status: v.literal(304),
  response: v.object({ headers: v.record(v.string(), v.union([v.string(), v.number(), v.undefined()])) }),
});

/** A 304 is the hoped-for response, not a failure. */
function notModified(error: unknown): Answer | undefined {
  const parsed = v.safeParse(NotModified, error);
  return parsed.success ? { status: 304, headers: parsed.output.response.headers, data: undefined } : undefined;
}

const nextPage = ({ headers }: Answer): string | undefined =>
  /<([^<>]+)>;\s*rel="next"/.exec(String(headers['link'] ?? ''))?.[1];

/** @throws SourceError invalidAnswer: another program answered, or GitHub has changed */
export function parseAnswer<const S extends v.GenericSchema>(schema: S, data: unknown, what: string): v.InferOutput<S> {
  const parsed = v.safeParse(schema, data);
  if (parsed.success) return parsed.output;
  const where = parsed.issues.map((issue) => v.getDotPath(issue) ?? 'the whole').slice(0, 3);
  throw new SourceError('invalidAnswer', `GitHub's answer on ${what} is not as described: ${where.join(', ')}`);
}
