import { createAppAuth } from '@octokit/auth-app';
import { Octokit } from '@octokit/core';
import * as v from 'valibot';
import { outgoingFetch } from '../../http/index.ts';
import { AppQuestionError } from './errors.ts';

/** Limit of an answer of GitHub; the largest here, a page of deliveries, has some ten kilobytes. */
const answerBytes = 4 * 1024 * 1024;
const apiVersion = '2022-11-28';

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
  const { endpoint, appId, privateKey, installationId } = options;
  const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const octokit = new Octokit({
    baseUrl: endpoint.replace(/\/+$/, ''),
    userAgent: 'oratorio',
    // Octokit passes whole requests, with their credentials, to its log.
    log: silent,
    authStrategy: createAppAuth,
    auth: { appId, privateKey, log: silent, ...(installationId !== undefined && { installationId }) },
    request: { fetch: transport(options), log: silent },
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
      return { data: parsed.output, clockSkewMs: skewOf(answer.headers.date) };
    },
  };
}

function ignore(): void {
  // Octokit's own messages are not logged.
}

/** `fetch` that ends in time, bounds the size of answers and contacts the endpoint only. */
function transport({ endpoint, timeoutMs, signal }: AppClientOptions) {
  const { origin } = new URL(endpoint);
  return async (url: string, init: RequestInit): Promise<Response> => {
    if (new URL(url).origin !== origin) throw new AppQuestionError('invalidAnswer', 'GitHub names another host.');
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const either = AbortSignal.any([timeout, ...(signal ? [signal] : [])]);
      const response = await outgoingFetch(url, { ...init, redirect: 'manual', signal: either });
      const { status, statusText, headers } = response;
      const body = await bodyOf(response);
      const copy = new Headers(headers);
      copy.delete('content-encoding');
      copy.delete('content-length');
      return new Response([204, 304].includes(status) ? null : body, { status, statusText, headers: copy });
    } catch (error) {
      if (error instanceof AppQuestionError) throw error;
      if (timeout.aborted) throw new AppQuestionError('timedOut', `GitHub did not answer within ${timeoutMs} ms.`);
      throw new AppQuestionError('unreachable', `GitHub could not be reached (${reasonOf(error)}).`);
    }
  };
}

async function bodyOf(response: Response): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > answerBytes) throw new AppQuestionError('invalidAnswer', 'GitHub answered with too much.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Only the system's code: a message may quote the sent data. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Error && 'code' in cause) return String(cause.code);
  return cause instanceof Error ? cause.name : 'unknown';
}

const Refusal = v.object({
  status: v.number(),
  response: v.optional(v.object({ data: v.optional(v.unknown()) })),
});
const RefusalBody = v.object({ message: v.string() });

function asQuestionError(error: unknown): AppQuestionError {
  const inner = error instanceof Error && error.cause instanceof AppQuestionError ? error.cause : error;
  if (inner instanceof AppQuestionError) return inner;
  const parsed = v.safeParse(Refusal, error);
  if (!parsed.success) return new AppQuestionError('unreachable', `GitHub could not be asked (${reasonOf(error)}).`);
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

function skewOf(date: string | undefined): number | null {
  const theirs = Date.parse(date ?? '');
  return Number.isNaN(theirs) ? null : Math.trunc((Date.now() - theirs) / 1_000) * 1_000;
}
