import * as v from 'valibot';
import { type AnyRoute, bytes, empty, HttpError, json, type Method, type RequestContext } from '../../http/index.ts';
import { pageOf } from './page.ts';
import { appId, appSlug, type DemoPull } from './pull.ts';

type Answer = ReturnType<typeof json>;
type Handle = (demo: DemoPull, context: RequestContext<never>) => Answer | Promise<Answer>;

const Body = v.optional(v.string(), '');
const Line = v.optional(v.number());
const NewComment = v.object({ body: Body, path: v.optional(v.string()), line: Line });
const NewReview = v.object({ body: Body, comments: v.optional(v.array(NewComment), []) });
const Submitted = v.object({ body: Body });
const Output = v.optional(v.object({ title: Body }), { title: '' });
const NewCheckRun = v.object({ external_id: Body, output: Output });
const ChangedCheckRun = v.object({ conclusion: v.optional(v.nullable(v.string()), null), output: Output });
const Graphql = v.object({ query: v.string() });

const permissions = { metadata: 'read', contents: 'read', pull_requests: 'write', issues: 'write', checks: 'write' };
const hour = 3_600_000;

const missing = () => new HttpError(404, 'notFound', 'Not Found');

function found<T>(rows: ReadonlyMap<number, T>, id: string | undefined): T {
  const row = rows.get(Number(id));
  if (row === undefined) throw missing();
  return row;
}

const repository = '/repos/:owner/:repo';
const pulls = `${repository}/pulls`;
const reviews = `${pulls}/:number/reviews`;
const issues = `${repository}/issues`;

const table: readonly (readonly [Method, string, Handle])[] = [
  [
    'GET',
    '/app',
    () => json(200, { id: appId, slug: appSlug, name: 'Oratorio demo', html_url: '', permissions, events: [] }),
  ],
  ['GET', '/app/hook/config', () => json(200, { url: '', content_type: 'json', insecure_ssl: '0', secret: '***' })],
  ['GET', '/app/hook/deliveries', () => json(200, [])],
  ['GET', `${repository}/installation`, () => json(200, { id: 1, permissions, suspended_at: null })],
  ['POST', '/app/installations/:id/access_tokens', token],
  ['GET', `${repository}/collaborators/:login/permission`, () => json(200, { permission: 'write' })],
  ['GET', pulls, (demo) => json(200, demo.openedAt === undefined ? [] : [demo.facts()])],
  ['GET', `${pulls}/:number`, (demo) => json(200, demo.facts())],
  ['GET', `${pulls}/:number/files`, () => json(200, [])],
  [
    'GET',
    reviews,
    (demo) =>
      json(
        200,
        [...demo.reviews.values()].map((each) => demo.review(each)),
      ),
  ],
  ['POST', reviews, createReview],
  ['GET', `${reviews}/:id`, (demo, { params }) => json(200, demo.review(found(demo.reviews, params['id'])))],
  ['DELETE', `${reviews}/:id`, deleteReview],
  ['POST', `${reviews}/:id/events`, submitReview],
  ['GET', `${pulls}/:number/comments`, listReviewComments],
  ['POST', `${pulls}/:number/comments`, createReviewComment],
  [
    'GET',
    `${issues}/:number/comments`,
    (demo) =>
      json(
        200,
        [...demo.conversation.values()].map((each) => demo.comment(each)),
      ),
  ],
  ['POST', `${issues}/:number/comments`, createComment],
  ['PATCH', `${issues}/comments/:id`, editComment],
  ['DELETE', `${issues}/comments/:id`, (demo, { params }) => removed(demo.conversation, params['id'])],
  ['DELETE', `${pulls}/comments/:id`, (demo, { params }) => removed(demo.reviewComments, params['id'])],
  ['GET', `${repository}/commits/:ref/check-runs`, listCheckRuns],
  ['POST', `${repository}/check-runs`, createCheckRun],
  ['PATCH', `${repository}/check-runs/:id`, changeCheckRun],
  ['POST', '/graphql', graphql],
  ['GET', '/:owner/:repo/pull/:number', (demo) => bytes(200, 'text/html; charset=utf-8', pageOf(demo))],
];

/** Routes of GitHub's API that reviews use, and the page of the pull request. A route checks only the values that it reads. */
export const demoRoutes = (demo: DemoPull): AnyRoute[] =>
  table.map(([method, path, handle]) => ({ method, path, handler: (context) => handle(demo, context) }));

function token(): Answer {
  return json(201, { token: 'ghs_demo', expires_at: new Date(Date.now() + hour).toISOString(), permissions });
}

async function createReview(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const { body, comments } = await context.json(NewReview);
  const review = { id: demo.nextId(), body, state: 'PENDING' as const };
  demo.reviews.set(review.id, review);
  for (const comment of comments) {
    const id = demo.nextId();
    demo.reviewComments.set(id, { ...comment, id, reviewId: review.id });
  }
  return json(200, demo.review(review));
}

function deleteReview(demo: DemoPull, { params }: RequestContext<never>): Answer {
  const review = found(demo.reviews, params['id']);
  demo.reviews.delete(review.id);
  for (const { id, reviewId } of demo.reviewComments.values())
    if (reviewId === review.id) demo.reviewComments.delete(id);
  return json(200, demo.review(review));
}

async function submitReview(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const review = found(demo.reviews, context.params['id']);
  const { body } = await context.json(Submitted);
  Object.assign(review, { body, state: 'COMMENTED' });
  return json(200, demo.review(review));
}

/** Lists review comments, newest first, without those of a pending review. */
function listReviewComments(demo: DemoPull): Answer {
  const shown = [...demo.reviewComments.values()].filter(
    ({ reviewId }) => demo.reviews.get(reviewId ?? 0)?.state !== 'PENDING',
  );
  return json(
    200,
    shown.reverse().map((each) => demo.comment(each)),
  );
}

async function createReviewComment(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const comment = { ...(await context.json(NewComment)), id: demo.nextId() };
  demo.reviewComments.set(comment.id, comment);
  return json(201, demo.comment(comment));
}

async function createComment(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const comment = { id: demo.nextId(), body: (await context.json(Submitted)).body };
  demo.conversation.set(comment.id, comment);
  return json(201, demo.comment(comment));
}

async function editComment(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const comment = found(demo.conversation, context.params['id']);
  comment.body = (await context.json(Submitted)).body;
  return json(200, demo.comment(comment));
}

function removed(rows: Map<number, unknown>, id: string | undefined): Answer {
  if (!rows.delete(Number(id))) throw missing();
  return empty();
}

function listCheckRuns(demo: DemoPull): Answer {
  return json(200, { check_runs: [...demo.checkRuns.values()].map((each) => demo.checkRun(each)) });
}

async function createCheckRun(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const { external_id: externalId, output } = await context.json(NewCheckRun);
  const run = { id: demo.nextId(), externalId, title: output.title, conclusion: null };
  demo.checkRuns.set(run.id, run);
  return json(201, demo.checkRun(run));
}

async function changeCheckRun(demo: DemoPull, context: RequestContext<never>): Promise<Answer> {
  const run = found(demo.checkRuns, context.params['id']);
  const { conclusion, output } = await context.json(ChangedCheckRun);
  Object.assign(run, { conclusion, title: output.title });
  return json(200, demo.checkRun(run));
}

/** Threads are only resolved over GraphQL. This stand-in has none: each finding counts as resolved. */
async function graphql(_: DemoPull, context: RequestContext<never>): Promise<Answer> {
  await context.json(Graphql);
  return json(200, { data: { repository: { pullRequest: null } } });
}
