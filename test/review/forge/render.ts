import type { Forge } from './forge.ts';
import type {
  ForgeCheckRun,
  ForgeComment,
  ForgeDelivery,
  ForgePull,
  ForgeRepository,
  ForgeReview,
  ForgeReviewComment,
} from './model.ts';
import { type Json, resource } from './schema.ts';

const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
const link = (href: string) => ({ href });

export const user = (login: string): Json =>
  resource('simple-user', { login, id: 1, type: login.endsWith('[bot]') ? 'Bot' : 'User' });

const webOf = (forge: Forge, { owner, name }: Pick<ForgeRepository, 'owner' | 'name'>): string =>
  `${forge.url}/${owner}/${name}`;

export function repository(forge: Forge, repo: ForgeRepository, schema = 'repository'): Json {
  const { id, owner, name, defaultBranch } = repo;
  return resource(schema, {
    id,
    name,
    full_name: `${owner}/${name}`,
    owner: user(owner),
    default_branch: defaultBranch,
    clone_url: `${forge.url}/${owner}/${name}.git`,
    html_url: webOf(forge, repo),
  });
}

const pullUrl = (forge: Forge, repo: ForgeRepository, { number }: { readonly number: number }): string =>
  `${webOf(forge, repo)}/pull/${number}`;

export function pull(forge: Forge, repo: ForgeRepository, of: ForgePull, schema = 'pull-request-simple'): Json {
  const { owner } = repo;
  const own = repository(forge, repo);
  const at = pullUrl(forge, repo, of);
  const links = ['comments', 'commits', 'statuses', 'html', 'issue', 'review_comments', 'review_comment', 'self'];
  return resource(schema, {
    id: repo.id * 100_000 + of.number,
    number: of.number,
    title: of.title,
    body: of.body,
    user: user(of.author),
    author_association: of.authorAssociation,
    state: of.state,
    draft: of.isDraft,
    merged_at: of.isMerged ? iso(of.updatedAt) : null,
    labels: of.labels.map((label, id) => ({
      id,
      node_id: '',
      url: at,
      name: label,
      color: 'ffffff',
      default: false,
      description: '',
    })),
    html_url: at,
    updated_at: iso(of.updatedAt),
    base: { label: of.baseRef, ref: of.baseRef, sha: of.baseSha, repo: own, user: user(owner) },
    head: {
      label: of.headRef,
      ref: of.headRef,
      sha: of.headSha,
      repo: of.isFork ? { ...own, id: repo.id + 1_000_000 } : own,
      user: user(of.author),
    },
    _links: Object.fromEntries(links.map((each) => [each, link(at)])),
    ...(schema === 'pull-request' && { merged: of.isMerged, changed_files: of.files.length }),
  });
}

export const review = (forge: Forge, repo: ForgeRepository, of: ForgeReview): Json => {
  const at = pullUrl(forge, repo, of);
  return resource('pull-request-review', {
    id: of.id,
    user: user(of.author),
    body: of.body,
    state: of.state,
    commit_id: of.commitId,
    html_url: `${at}#pullrequestreview-${of.id}`,
    pull_request_url: at,
    _links: { html: link(at), pull_request: link(at) },
  });
};

export const reviewComment = (forge: Forge, repo: ForgeRepository, of: ForgeReviewComment): Json => {
  const at = pullUrl(forge, repo, of);
  return resource('pull-request-review-comment', {
    id: of.id,
    pull_request_review_id: of.reviewId,
    user: user(of.author),
    body: of.body,
    path: of.path,
    commit_id: of.commitId,
    original_commit_id: of.commitId,
    ...(of.line !== null && { line: of.line, side: of.side }),
    ...(of.startLine !== null && { start_line: of.startLine }),
    subject_type: of.subjectType,
    html_url: `${at}#discussion_r${of.id}`,
    pull_request_url: at,
    _links: { self: link(at), html: link(at), pull_request: link(at) },
  });
};

export const comment = (forge: Forge, repo: ForgeRepository, of: ForgeComment): Json =>
  resource('issue-comment', {
    id: of.id,
    user: user(of.author),
    author_association: of.association,
    body: of.body,
    html_url: `${pullUrl(forge, repo, of)}#issuecomment-${of.id}`,
  });

export const reaction = (of: { readonly id: number; readonly user: string; readonly content: string }): Json =>
  resource('reaction', { id: of.id, user: user(of.user), content: of.content });

export const checkRun = (forge: Forge, repo: ForgeRepository, of: ForgeCheckRun): Json =>
  resource('check-run', {
    id: of.id,
    head_sha: of.headSha,
    external_id: of.externalId,
    name: of.name,
    status: of.status,
    conclusion: of.conclusion,
    html_url: `${webOf(forge, repo)}/runs/${of.id}`,
    output: {
      title: of.title,
      summary: of.summary,
      text: null,
      annotations_count: 0,
      annotations_url: webOf(forge, repo),
    },
    app: app(forge),
  });

export const app = (forge: Forge): Json =>
  resource('integration', {
    id: forge.app.id,
    slug: forge.app.slug,
    name: 'Oratorio test',
    owner: user('acme'),
    html_url: `${forge.url}/apps/${forge.app.slug}`,
    permissions: forge.app.permissions,
    events: forge.app.events,
  });

export const installation = (forge: Forge, id: number, of = forge.installations.get(id)): Json => {
  return resource('installation', {
    id,
    app_id: forge.app.id,
    app_slug: forge.app.slug,
    account: user(of?.owner ?? ''),
    permissions: of?.permissions ?? {},
    events: forge.app.events,
    suspended_at: of?.isSuspended ? iso(forge.now()) : null,
  });
};

/** Puts in the number of a delivery as text: it is larger than JavaScript can write. */
export const delivery = (of: ForgeDelivery): Json => ({
  id: bigMark + of.id,
  guid: of.guid,
  delivered_at: iso(of.deliveredAt),
  redelivery: of.redelivery,
  duration: 0.1,
  status: of.statusCode < 300 ? 'OK' : 'Failed',
  status_code: of.statusCode,
  event: of.event,
  action: of.action,
  installation_id: 1,
  repository_id: 1,
});
const bigMark = '\u0000big';
export const withBigNumbers = (text: string): string => text.replace(/"\\u0000big(\d+)"/g, '$1');
/** For the validator, which has no such numbers either. */
export const withoutBigNumbers = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/"\\u0000big\d+"/g, '1'));

export const file = (of: { readonly filename: string; readonly status: string; readonly patch?: string }): Json =>
  resource('diff-entry', { ...of, sha: '0'.repeat(40) });
