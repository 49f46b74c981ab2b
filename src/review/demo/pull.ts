import { pull } from './bookshop.ts';
import type { DemoRepository } from './repository.ts';

export const appId = 1;
export const appSlug = 'oratorio-demo';
const repositoryId = 1;

/** A comment of the App: on lines, on a file, or in the conversation. */
export interface DemoComment {
  readonly id: number;
  body: string;
  /** Absent in the conversation. */
  readonly path?: string | undefined;
  readonly line?: number | undefined;
  readonly reviewId?: number | undefined;
}

export interface DemoReview {
  readonly id: number;
  body: string;
  state: 'PENDING' | 'COMMENTED';
}

export interface DemoCheckRun {
  readonly id: number;
  readonly externalId: string;
  title: string;
  conclusion: string | null;
}

/** The pull request of the demo, and the texts written to it. */
export class DemoPull {
  /** Address of the pull request's page. */
  url = '';
  /** ISO time; undefined: the repository has no open pull request yet. */
  openedAt: string | undefined;
  readonly reviews = new Map<number, DemoReview>();
  readonly reviewComments = new Map<number, DemoComment>();
  readonly conversation = new Map<number, DemoComment>();
  readonly checkRuns = new Map<number, DemoCheckRun>();
  readonly #owner: string;
  readonly #name: string;
  readonly #shas: Pick<DemoRepository, 'baseSha' | 'headSha'>;
  #id = 100;

  constructor(owner: string, name: string, shas: Pick<DemoRepository, 'baseSha' | 'headSha'>) {
    this.#owner = owner;
    this.#name = name;
    this.#shas = shas;
  }

  get fullName(): string {
    return `${this.#owner}/${this.#name}`;
  }

  nextId(): number {
    this.#id += 1;
    return this.#id;
  }

  /** The pull request in the form of GitHub's API. */
  facts(): object {
    const { number, title, body, author, headRef } = pull;
    const repo = { id: repositoryId };
    return {
      ...{ number, title, body, state: 'open', draft: false, merged_at: null, labels: [] },
      user: { login: author, type: 'User' },
      author_association: 'MEMBER',
      html_url: this.url,
      updated_at: this.openedAt,
      base: { ref: 'main', sha: this.#shas.baseSha, repo },
      head: { ref: headRef, sha: this.#shas.headSha, repo },
    };
  }

  /** Payload of the pull request's webhook, without the action. */
  event(): object {
    return {
      number: pull.number,
      pull_request: this.facts(),
      repository: { id: repositoryId, full_name: this.fullName, html_url: this.url },
      sender: { login: pull.author },
    };
  }

  review({ id, body, state }: DemoReview): object {
    return { id, body, state, user: bot, html_url: `${this.url}#review-${id}` };
  }

  comment({ id, body, path, reviewId }: DemoComment): object {
    const place = path === undefined ? {} : { path, pull_request_review_id: reviewId ?? null };
    return { id, body, user: bot, html_url: `${this.url}#comment-${id}`, ...place };
  }

  checkRun({ id, externalId }: DemoCheckRun): object {
    return { id, external_id: externalId, html_url: `${this.url}#checks`, app: { id: appId } };
  }
}

const bot = { login: `${appSlug}[bot]`, type: 'Bot' };
