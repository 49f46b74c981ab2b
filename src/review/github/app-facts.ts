import { AppAnswer, HookAnswer } from './answers.ts';
import { type Answer, type GitHubClient, parseAnswer } from './client.ts';
import { asApp } from './installations.ts';

/** Facts of the App for the diagnostics. */
export interface AppFacts {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly url: string;
  readonly permissions: Readonly<Record<string, string>>;
  readonly events: readonly string[];
  readonly missingPermissions: readonly string[];
  /** Without `issue_comment` there are no commands; without `pull_request`, only polls find new heads. */
  readonly missingEvents: readonly string[];
  /** Difference of our clock from GitHub's, in milliseconds: positive when ours is fast. Exact to a second. */
  readonly clockSkewMs: number;
}
export interface HookFacts {
  readonly url: string;
  readonly isJson: boolean;
  readonly verifiesTls: boolean;
  readonly hasSecret: boolean;
}

const needed: Readonly<Record<string, 'read' | 'write'>> = {
  contents: 'read',
  metadata: 'read',
  pull_requests: 'write',
  issues: 'write',
  checks: 'write',
};
const events = ['issue_comment', 'pull_request', 'pull_request_review_comment', 'check_run'];

/** @throws SourceError appCredentialsInvalid, and any error of the request */
export async function readApp(client: GitHubClient): Promise<AppFacts> {
  const answer = await asTheApp(client.read('GET /app'));
  const { id, slug, name, html_url, permissions, events: subscribed } = parseAnswer(AppAnswer, answer.data, 'the App');
  return {
    id,
    slug,
    name,
    url: html_url,
    permissions,
    events: subscribed,
    missingPermissions: Object.entries(needed)
      .filter(([permission, level]) => permissions[permission] !== level && permissions[permission] !== 'write')
      .map(([permission, level]) => `${permission}: ${level}`),
    missingEvents: events.filter((event) => !subscribed.includes(event)),
    clockSkewMs: skewOf(answer),
  };
}

/** @throws SourceError */
export async function readHook(client: GitHubClient): Promise<HookFacts> {
  const { data } = await asTheApp(client.read('GET /app/hook/config'));
  const { url, content_type, insecure_ssl, secret } = parseAnswer(HookAnswer, data, 'the webhook');
  return {
    url: url ?? '',
    isJson: content_type === 'json',
    verifiesTls: String(insecure_ssl ?? '0') === '0',
    hasSecret: Boolean(secret),
  };
}

const asTheApp = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch((error: unknown) => {
    throw asApp(error);
  });

function skewOf({ headers }: Answer): number {
  const theirs = Date.parse(String(headers['date']));
  return Number.isNaN(theirs) ? 0 : Math.trunc((Date.now() - theirs) / 1_000) * 1_000;
}
