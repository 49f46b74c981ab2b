import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';

export interface ForgeFile {
  readonly filename: string;
  readonly status: string;
  readonly patch?: string;
}
export interface ForgePull {
  readonly number: number;
  title: string;
  body: string;
  author: string;
  authorAssociation: string;
  state: 'open' | 'closed';
  isMerged: boolean;
  isDraft: boolean;
  isFork: boolean;
  labels: string[];
  baseRef: string;
  baseSha: string;
  headRef: string;
  headSha: string;
  updatedAt: number;
  files: readonly ForgeFile[];
  /** Files of earlier heads, by commit. */
  readonly filesAt: Map<string, readonly ForgeFile[]>;
  /** Every commit that a comment may name. */
  readonly commits: string[];
}
export interface ForgeReview {
  readonly id: number;
  readonly number: number;
  readonly author: string;
  body: string;
  readonly commitId: string;
  state: 'PENDING' | 'COMMENTED';
  readonly createdAt: number;
}
export interface ForgeReviewComment {
  readonly id: number;
  readonly number: number;
  readonly reviewId: number;
  readonly author: string;
  readonly body: string;
  readonly path: string;
  readonly commitId: string;
  readonly line: number | null;
  readonly side: 'LEFT' | 'RIGHT';
  readonly startLine: number | null;
  readonly subjectType: 'line' | 'file';
  isResolved: boolean;
  readonly createdAt: number;
}
export interface ForgeComment {
  readonly id: number;
  readonly number: number;
  readonly author: string;
  /** Author association, as far as the App may see it. */
  readonly association: string;
  body: string;
  /** How often it was changed. */
  edits: number;
  readonly createdAt: number;
  readonly reactions: { readonly id: number; readonly user: string; readonly content: string }[];
}
export interface ForgeCheckRun {
  readonly id: number;
  readonly headSha: string;
  readonly externalId: string;
  name: string;
  status: string;
  conclusion: string | null;
  title: string;
  summary: string;
  readonly createdAt: number;
}
export interface ForgeDelivery {
  readonly id: bigint;
  readonly guid: string;
  readonly event: string;
  readonly action: string | null;
  readonly deliveredAt: number;
  readonly redelivery: boolean;
  readonly statusCode: number;
  readonly payload: string;
}

export class ForgeRepository {
  readonly id: number;
  readonly owner: string;
  readonly name: string;
  installationId: number;
  /** A bare repository, when there is git behind it. */
  readonly gitDirectory: string | undefined;
  readonly pulls = new Map<number, ForgePull>();
  readonly reviews: ForgeReview[] = [];
  readonly reviewComments: ForgeReviewComment[] = [];
  readonly comments: ForgeComment[] = [];
  readonly checkRuns: ForgeCheckRun[] = [];
  readonly collaborators = new Map<string, 'admin' | 'write' | 'read' | 'none'>();
  defaultBranch = 'main';
  /** Grows with every change of a pull request. */
  version = 0;

  constructor(id: number, owner: string, name: string, installationId: number, gitDirectory?: string) {
    this.id = id;
    this.owner = owner;
    this.name = name;
    this.installationId = installationId;
    this.gitDirectory = gitDirectory;
  }

  /** Newest first. */
  get pullsByUpdate(): readonly ForgePull[] {
    if (this.#sorted?.version !== this.version) {
      const pulls = [...this.pulls.values()].sort((one, other) => other.updatedAt - one.updatedAt);
      this.#sorted = { version: this.version, pulls };
    }
    return this.#sorted.pulls;
  }
  #sorted: { readonly version: number; readonly pulls: readonly ForgePull[] } | undefined;
}

export interface ForgeInstallation {
  readonly id: number;
  readonly owner: string;
  permissions: Record<string, string>;
  isSuspended: boolean;
}

export interface ForgeToken {
  readonly installationId: number;
  /** Ids of repositories; undefined: all of the installation. */
  readonly repositories: readonly number[] | undefined;
  readonly permissions: Readonly<Record<string, string>>;
  readonly expiresAt: number;
}

/** The App as its owner registered it. */
export class ForgeApp {
  readonly id = 4711;
  slug = 'oratorio-test';
  permissions: Record<string, string> = {
    metadata: 'read',
    contents: 'read',
    pull_requests: 'write',
    issues: 'write',
    checks: 'write',
  };
  events = ['issue_comment', 'pull_request', 'pull_request_review_comment', 'check_run'];
  hook: { url: string; secret: string; contentType: string } = { url: '', secret: '', contentType: 'json' };
  readonly publicKey: KeyObject;
  /** PKCS#1, as GitHub gives it out. */
  readonly privateKey: string;

  constructor() {
    const { publicKey, privateKey } = keys();
    this.publicKey = publicKey;
    this.privateKey = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  }

  get login(): string {
    return `${this.slug}[bot]`;
  }
}

let pair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject } | undefined;
/** Made once in a process: it takes a while. */
function keys() {
  pair ??= generateKeyPairSync('rsa', { modulusLength: 2_048 });
  return pair;
}

export const shaOf = (text: string): string => createHash('sha1').update(text).digest('hex');
