import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/core';
import * as v from 'valibot';
import { apiVersion, clockSkewMs, createTransport, GitHubError } from '../../github/index.ts';
import { messageOf } from '../../lib/index.ts';
import { AppQuestionError } from './errors.ts';

/** Limit of an answer of GitHub; the largest here, a page of deliveries, has some ten kilobytes. */
const answerBytes = 4 * 1024 * 1024;

export interface AppClientOptions {
  /** Base of the API: `https://api.github.com`, or `https://HOST/api/v3`. */
  readonly endpoint: string;
  readonly appId: string | number;
  /** PKCS#8 in PEM, as `usablePrivateKey` gives it. */
  readonly privateKey: string;
  /** Reads as this installation of the App, and sees its private repositories. */
  readonly installationId?: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface AppAnswer<T> {
  readonly data: T;
  /** GitHub's clock against ours when it answered, in milliseconds: positive when ours is fast. Exact to a second. */
  readonly clockSkewMs: number | null;
}

/** Asks as the App and only reads: there is no way to send anything else through it. */
export interface AppClient {
  /** @throws AppQuestionError */
  get<const S extends v.GenericSchema>(
    path: string,
    schema: S,
    parameters?: Readonly<Record<string, string | number>>,
  ): Promise<AppAnswer<v.InferOutput<S>>>;
}

export function createAppClient(options: AppClientOptions): AppClient {
  const { endpoint, appId, privateKey, installationId, timeoutMs, signal } = options;
  const limits = { requestTimeoutMs: timeoutMs, answerBytes };
  const send = createTransport(endpoint, limits, { stop: signal });
  const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const octokit = new Octokit({
    baseUrl: endpoint.replace(/\/+$/, ''),
    userAgent: 'oratorio',
    // Octokit passes whole requests, with their credentials, to its log.
    log: silent,
    authStrategy: createAppAuth,
    auth: { appId, privateKey, log: silent, ...(installationId !== undefined && { installationId }) },
    request: { fetch: (url: string, init: RequestInit) => send(url, { ...init, redirect: 'manual' }), log: silent },
  });
  return {
    async get(path, schema, parameters = {}) {
      const answer = await octokit
        .request(`GET ${path}`, { ...parameters, headers: { 'x-github-api-version': apiVersion } })
        .catch((error: unknown) => {
          throw asQuestionError(error);
        });
      const parsed = v.safeParse(schema, answer.data);
      if (!parsed.success)
        throw new AppQuestionError('invalidAnswer', 'GitHub answered in another way than it describes.');
      return { data: parsed.output, clockSkewMs: clockSkewMs(answer.headers.date) };
    },
  };
}

function ignore(): void {
  // Octokit's own messages are not logged.
}

const Refusal = v.object({
  status: v.number(),
  response: v.optional(v.object({ data: v.optional(v.unknown()) })),
});
const RefusalBody = v.object({ message: v.string() });

function asQuestionError(error: unknown): AppQuestionError {
  const inner = error instanceof Error && error.cause instanceof GitHubError ? error.cause : error;
  if (inner instanceof GitHubError) {
    const code = inner.code === 'timedOut' || inner.code === 'invalidAnswer' ? inner.code : 'unreachable';
    return new AppQuestionError(code, `${inner.message}.`);
  }
  const parsed = v.safeParse(Refusal, error);
  if (!parsed.success)
    return new AppQuestionError('unreachable', `GitHub could not be asked: ${plain(messageOf(inner))}.`);
  const { status, response } = parsed.output;
  const refusal = v.safeParse(RefusalBody, response?.data);
  const words = refusal.success ? `: ${plain(refusal.output.message)}` : '';
  // 404 to the App's own resources: there is no App with this id.
  if (status === 401 || words.includes('Integration not found'))
    return new AppQuestionError(
      'credentialsRefused',
      `GitHub does not accept the App's id and key (${status}${words}).`,
    );
  if (status === 404) return new AppQuestionError('notFound', `GitHub knows nothing of it (404${words}).`);
  if (status >= 500) return new AppQuestionError('unreachable', `GitHub answers ${status}${words}.`);
  return new AppQuestionError('refused', `GitHub refuses (${status}${words}).`);
}

/** One line of a stranger's text for a terminal. */
const plain = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 200);
