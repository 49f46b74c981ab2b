import { issueToken, permits, Refusal } from './auth.ts';
import { isInDiff } from './diff-lines.ts';
import type { Forge } from './forge.ts';
import type { ForgeFile, ForgePull, ForgeRepository, ForgeReview, ForgeReviewComment, ForgeToken } from './model.ts';
import * as render from './render.ts';
import { type Json, resource } from './schema.ts';

export interface Asked {
  readonly forge: Forge;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Json;
  readonly authorization: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly repo: ForgeRepository;
  readonly token: ForgeToken;
}
export interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface Route {
  readonly method: string;
  readonly path: string;
  /** `app`: a JWT. Else the permission that the token must have. */
  readonly needs: 'app' | readonly string[];
  readonly handle: (asked: Asked) => Answered | Promise<Answered>;
}

const ok = (body: unknown, status = 200): Answered => ({ status, body });

function pullOf({ repo, params }: Asked): ForgePull {
  const found = repo.pulls.get(Number(params['pull_number'] ?? params['issue_number']));
  if (!found) throw new Refusal(404, 'Not Found');
  return found;
}

/** One page, with a `Link` as GitHub writes it. */
function page<T>(
  { forge, query }: Asked,
  path: string,
  all: readonly T[],
  shown: (one: T) => unknown,
  wrap?: string,
): Answered {
  const size = Math.min(100, Number(query.get('per_page') ?? 30));
  const number = Number(query.get('page') ?? 1);
  const next = new URLSearchParams(query);
  next.set('page', String(number + 1));
  const rows = all.slice((number - 1) * size, number * size).map(shown);
  const hasNext = all.length > number * size;
  return {
    status: 200,
    body: wrap === undefined ? rows : { total_count: all.length, [wrap]: rows },
    ...(hasNext && {
      headers: { link: `<${forge.apiUrl}${path}?${next}>; rel="next", <${forge.apiUrl}${path}>; rel="last"` },
    }),
  };
}

const repoPath = ({ repo }: Asked): string => `/repos/${repo.owner}/${repo.name}`;
const word = (value: unknown): string => (typeof value === 'string' ? value : '');
const whole = (value: unknown): number | null => (typeof value === 'number' ? value : null);
const longestBody = 65_536;

function checkedBody(value: unknown): string {
  const body = word(value);
  if (body.length > longestBody)
    throw new Refusal(422, 'Validation Failed', { errors: ['body is too long (maximum is 65536 characters)'] });
  return body;
}

const filesOf = (pull: ForgePull, commit: string): readonly ForgeFile[] =>
  pull.headSha === commit ? pull.files : (pull.filesAt.get(commit) ?? pull.files);

function createReview(asked: Asked): Answered {
  const { forge, repo, body } = asked;
  const pull = pullOf(asked);
  const commitId = word(body['commit_id']) || pull.headSha;
  const comments = (body['comments'] ?? []) as Json[];
  const isPending = body['event'] === undefined;
  const author = forge.app.login;
  const refuse = (reason: string) => new Refusal(422, 'Unprocessable Entity', { errors: [reason] });
  if (repo.reviews.some((each) => each.number === pull.number && each.author === author && each.state === 'PENDING')) {
    throw refuse('User can only have one pending review per pull request');
  }
  if (!pull.commits.includes(commitId)) throw refuse('No commit found for SHA');
  if (!isPending && word(body['body']) === '') throw refuse('Review body is required');
  if (!comments.every((comment) => isInDiff(filesOf(pull, commitId), comment))) {
    throw refuse('Pull request review thread line must be part of the diff');
  }
  const id = forge.nextId();
  const review: ForgeReview = {
    id,
    number: pull.number,
    author,
    body: checkedBody(body['body']),
    commitId,
    state: isPending ? 'PENDING' : 'COMMENTED',
  };
  repo.reviews.push(review);
  for (const comment of comments) addLineComment(asked, pull, id, commitId, comment);
  return ok(render.review(repo, review));
}

function addLineComment(
  { forge, repo }: Asked,
  pull: ForgePull,
  reviewId: number,
  commitId: string,
  comment: Json,
): ForgeReviewComment {
  const made: ForgeReviewComment = {
    id: forge.nextId(),
    number: pull.number,
    reviewId,
    author: forge.app.login,
    body: checkedBody(comment['body']),
    path: word(comment['path']),
    commitId,
    line: whole(comment['line']),
    side: comment['side'] === 'LEFT' ? 'LEFT' : 'RIGHT',
    startLine: whole(comment['start_line']),
    subjectType: comment['subject_type'] === 'file' ? 'file' : 'line',
    isResolved: false,
  };
  repo.reviewComments.push(made);
  return made;
}

function createReviewComment(asked: Asked): Answered {
  const { forge, repo, body } = asked;
  const pull = pullOf(asked);
  const commitId = word(body['commit_id']);
  const files = filesOf(pull, commitId);
  const isFile = body['subject_type'] === 'file' && files.some(({ filename }) => filename === body['path']);
  if (!pull.commits.includes(commitId) || !(isFile || isInDiff(files, body))) {
    throw new Refusal(422, 'Validation Failed', { errors: [{ resource: 'PullRequestReviewComment', code: 'custom' }] });
  }
  const id = forge.nextId();
  // GitHub puts each into a review of its own.
  repo.reviews.push({ id, number: pull.number, author: forge.app.login, body: '', commitId, state: 'COMMENTED' });
  return ok(render.reviewComment(repo, addLineComment(asked, pull, id, commitId, body)), 201);
}

function deleteReview(asked: Asked): Answered {
  const { repo, params } = asked;
  const at = repo.reviews.findIndex(({ id }) => id === Number(params['review_id']));
  const review = repo.reviews[at];
  if (!review) throw new Refusal(404, 'Not Found');
  if (review.state !== 'PENDING') throw new Refusal(422, 'Can not delete a non-pending pull request review');
  repo.reviews.splice(at, 1);
  const kept = repo.reviewComments.filter(({ reviewId }) => reviewId !== review.id);
  repo.reviewComments.splice(0, repo.reviewComments.length, ...kept);
  return ok(render.review(repo, review));
}

function commentOf({ repo, params }: Asked) {
  const found = repo.comments.find(({ id }) => id === Number(params['comment_id']));
  if (!found) throw new Refusal(404, 'Not Found');
  return found;
}

function react(asked: Asked): Answered {
  const { forge, body } = asked;
  const { reactions } = commentOf(asked);
  const content = word(body['content']);
  const before = reactions.find((each) => each.user === forge.app.login && each.content === content);
  if (before) return ok(render.reaction(before));
  const made = { id: forge.nextId(), user: forge.app.login, content };
  reactions.push(made);
  return ok(render.reaction(made), 201);
}

function output(body: Json): { title: string; summary: string } {
  const { title, summary } = (body['output'] ?? {}) as Json;
  if (word(summary).length > 65_535) throw new Refusal(422, 'Validation Failed');
  return { title: word(title), summary: word(summary) };
}

function createCheckRun({ forge, repo, body }: Asked): Answered {
  const run = {
    id: forge.nextId(),
    headSha: word(body['head_sha']),
    externalId: word(body['external_id']),
    name: word(body['name']),
    status: word(body['status']) || 'queued',
    conclusion: body['conclusion'] === undefined ? null : word(body['conclusion']),
    ...output(body),
  };
  repo.checkRuns.push(run);
  return ok(render.checkRun(forge, repo, run), 201);
}

function updateCheckRun({ forge, repo, params, body }: Asked): Answered {
  const run = repo.checkRuns.find(({ id }) => id === Number(params['check_run_id']));
  if (!run) throw new Refusal(404, 'Not Found');
  Object.assign(run, output(body), { status: word(body['status']) || run.status });
  if (body['conclusion'] !== undefined) run.conclusion = word(body['conclusion']);
  return ok(render.checkRun(forge, repo, run));
}

function listPulls(asked: Asked): Answered {
  const { forge, repo, query, ifNoneMatch } = asked;
  const etag = `W/"${repo.id}-${repo.version}-${query}"`;
  if (ifNoneMatch === etag) return { status: 304, body: undefined, headers: { etag } };
  const state = query.get('state') ?? 'open';
  const pulls = repo.pullsByUpdate.filter((pull) => state === 'all' || pull.state === state);
  const answer = page(asked, `${repoPath(asked)}/pulls`, pulls, (each) => render.pull(forge, repo, each));
  return { ...answer, headers: { ...answer.headers, etag } };
}

function createToken(asked: Asked): Answered {
  const { forge, params, body } = asked;
  const installation = forge.installations.get(Number(params['installation_id']));
  if (!installation) throw new Refusal(404, 'Not Found');
  if (installation.isSuspended) throw new Refusal(403, 'This installation has been suspended');
  const wanted = (body['permissions'] ?? installation.permissions) as Record<string, string>;
  const missing = Object.entries(wanted).filter(([name, level]) => !permits(installation.permissions[name], level));
  if (missing.length > 0) throw new Refusal(422, 'The permissions requested are not granted to this installation.');
  const names = body['repositories'] as string[] | undefined;
  const repositories = names?.map((name) => forge.repository(installation.owner, name));
  if (repositories?.some((each) => each?.installationId !== installation.id)) {
    throw new Refusal(
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
    );
  }
  const ids = repositories?.flatMap((each) => (each ? [each.id] : []));
  const { value, expiresAt } = issueToken(forge, {
    installationId: installation.id,
    repositories: ids,
    permissions: wanted,
  });
  return ok(
    {
      token: value,
      expires_at: new Date(expiresAt).toISOString(),
      permissions: wanted,
      repository_selection: ids ? 'selected' : 'all',
    },
    201,
  );
}

function repoInstallation({ forge, params }: Asked): Answered {
  const repo = forge.repository(params['owner'] ?? '', params['repo'] ?? '');
  if (!repo || !forge.installations.has(repo.installationId)) throw new Refusal(404, 'Not Found');
  return ok(render.installation(forge, repo.installationId));
}

function permission({ repo, params }: Asked): Answered {
  const login = params['username'] ?? '';
  const level = repo.collaborators.get(login.toLowerCase());
  if (level === undefined) throw new Refusal(404, 'Not Found');
  return ok(resource('repository-collaborator-permission', { permission: level, role_name: level, user: null }));
}

async function redeliver({ forge, params }: Asked): Promise<Answered> {
  const delivery = forge.deliveries.find(({ id }) => String(id) === params['delivery_id']);
  if (!delivery) throw new Refusal(422, 'Validation Failed');
  await forge.deliver(delivery.event, delivery.payload, { guid: delivery.guid, redelivery: true });
  return ok({}, 202);
}

/** GitHub lists them newest first and pages by cursor. */
function listDeliveries(asked: Asked): Answered {
  const { forge, query } = asked;
  const all = [...forge.deliveries].reverse();
  const from = Number(query.get('cursor') ?? 0);
  const size = Number(query.get('per_page') ?? 30);
  const next = new URLSearchParams({ per_page: String(size), cursor: String(from + size) });
  const link = `<${forge.apiUrl}/app/hook/deliveries?${next}>; rel="next"`;
  return {
    status: 200,
    body: all.slice(from, from + size).map(render.delivery),
    ...(all.length > from + size && { headers: { link } }),
  };
}

const pulls = '/repos/{owner}/{repo}/pulls';
const pullPath = `${pulls}/{pull_number}`;
const issues = '/repos/{owner}/{repo}/issues';
const readPulls = ['pull_requests:read'];
const writePulls = ['pull_requests:write'];
const conversation = (level: string) => [`issues:${level}`, `pull_requests:${level}`];

export const routes: readonly Route[] = [
  { method: 'GET', path: '/app', needs: 'app', handle: ({ forge }) => ok(render.app(forge)) },
  {
    method: 'GET',
    path: '/app/installations',
    needs: 'app',
    handle: ({ forge }) => ok([...forge.installations.keys()].map((id) => render.installation(forge, id))),
  },
  { method: 'POST', path: '/app/installations/{installation_id}/access_tokens', needs: 'app', handle: createToken },
  {
    method: 'GET',
    path: '/app/hook/config',
    needs: 'app',
    handle: ({ forge: { app } }) =>
      ok({
        url: app.hook.url || 'https://example.test/',
        content_type: app.hook.contentType,
        insecure_ssl: '0',
        ...(app.hook.secret && { secret: '********' }),
      }),
  },
  { method: 'GET', path: '/app/hook/deliveries', needs: 'app', handle: listDeliveries },
  { method: 'POST', path: '/app/hook/deliveries/{delivery_id}/attempts', needs: 'app', handle: redeliver },
  { method: 'GET', path: '/repos/{owner}/{repo}/installation', needs: 'app', handle: repoInstallation },
  {
    method: 'GET',
    path: '/repos/{owner}/{repo}',
    needs: ['metadata:read'],
    handle: ({ forge, repo }) => ok(render.repository(forge, repo, 'full-repository')),
  },
  { method: 'GET', path: pulls, needs: readPulls, handle: listPulls },
  {
    method: 'GET',
    path: pullPath,
    needs: readPulls,
    handle: (asked) => ok(render.pull(asked.forge, asked.repo, pullOf(asked), 'pull-request')),
  },
  {
    method: 'GET',
    path: `${pullPath}/files`,
    needs: readPulls,
    handle: (asked) =>
      page(asked, `${repoPath(asked)}/pulls/${pullOf(asked).number}/files`, pullOf(asked).files, render.file),
  },
  {
    method: 'GET',
    path: `${pullPath}/reviews`,
    needs: readPulls,
    handle: (asked) => {
      const { number } = pullOf(asked);
      const found = asked.repo.reviews.filter((each) => each.number === number);
      return page(asked, `${repoPath(asked)}/pulls/${number}/reviews`, found, (each) =>
        render.review(asked.repo, each),
      );
    },
  },
  { method: 'POST', path: `${pullPath}/reviews`, needs: writePulls, handle: createReview },
  { method: 'DELETE', path: `${pullPath}/reviews/{review_id}`, needs: writePulls, handle: deleteReview },
  {
    method: 'GET',
    path: `${pullPath}/comments`,
    needs: readPulls,
    handle: (asked) => {
      const { number } = pullOf(asked);
      const pending = new Set(asked.repo.reviews.filter(({ state }) => state === 'PENDING').map(({ id }) => id));
      const found = asked.repo.reviewComments.filter((each) => each.number === number && !pending.has(each.reviewId));
      if (asked.query.get('direction') === 'desc') found.reverse();
      return page(asked, `${repoPath(asked)}/pulls/${number}/comments`, found, (each) =>
        render.reviewComment(asked.repo, each),
      );
    },
  },
  { method: 'POST', path: `${pullPath}/comments`, needs: writePulls, handle: createReviewComment },
  {
    method: 'GET',
    path: `${issues}/{issue_number}/comments`,
    needs: conversation('read'),
    handle: (asked) => {
      const { number } = pullOf(asked);
      const found = asked.repo.comments.filter((each) => each.number === number);
      return page(asked, `${repoPath(asked)}/issues/${number}/comments`, found, (each) =>
        render.comment(asked.repo, each),
      );
    },
  },
  {
    method: 'POST',
    path: `${issues}/{issue_number}/comments`,
    needs: conversation('write'),
    handle: (asked) => {
      const made = asked.forge.comment(
        asked.repo,
        pullOf(asked).number,
        asked.forge.app.login,
        checkedBody(asked.body['body']),
      );
      return ok(render.comment(asked.repo, made), 201);
    },
  },
  {
    method: 'PATCH',
    path: `${issues}/comments/{comment_id}`,
    needs: conversation('write'),
    handle: (asked) => {
      const comment = commentOf(asked);
      if (comment.author !== asked.forge.app.login) throw new Refusal(403, 'Resource not accessible by integration');
      comment.body = checkedBody(asked.body['body']);
      return ok(render.comment(asked.repo, comment));
    },
  },
  { method: 'POST', path: `${issues}/comments/{comment_id}/reactions`, needs: conversation('write'), handle: react },
  {
    method: 'GET',
    path: '/repos/{owner}/{repo}/collaborators/{username}/permission',
    needs: ['metadata:read'],
    handle: permission,
  },
  { method: 'POST', path: '/repos/{owner}/{repo}/check-runs', needs: ['checks:write'], handle: createCheckRun },
  {
    method: 'PATCH',
    path: '/repos/{owner}/{repo}/check-runs/{check_run_id}',
    needs: ['checks:write'],
    handle: updateCheckRun,
  },
  {
    method: 'GET',
    path: '/repos/{owner}/{repo}/commits/{ref}/check-runs',
    needs: ['checks:read'],
    handle: (asked) => {
      const found = asked.repo.checkRuns.filter(
        (each) => each.headSha === asked.params['ref'] && each.name === asked.query.get('check_name'),
      );
      return page(
        asked,
        `${repoPath(asked)}/commits/${asked.params['ref']}/check-runs`,
        found,
        (each) => render.checkRun(asked.forge, asked.repo, each),
        'check_runs',
      );
    },
  },
];
