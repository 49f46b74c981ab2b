import {
  type Answered,
  type Asked,
  checkedBody,
  listed,
  ok,
  page,
  pullOf,
  type Route,
  repoPath,
  whole,
  word,
} from '../asked.ts';
import { Refusal } from '../auth.ts';
import { isInDiff } from '../diff-lines.ts';
import type { ForgeFile, ForgePull, ForgeReview, ForgeReviewComment } from '../model.ts';
import * as render from '../render.ts';
import type { Json } from '../schema.ts';

const filesOf = (pull: ForgePull, commit: string): readonly ForgeFile[] =>
  pull.headSha === commit ? pull.files : (pull.filesAt.get(commit) ?? pull.files);

/** All of it or nothing: one comment that is not in the diff refuses the others, and is not named. */
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
    createdAt: forge.now(),
  };
  repo.reviews.push(review);
  for (const comment of comments) addComment(asked, pull, { reviewId: id, commitId, comment });
  if (!isPending) forge.touch(repo, pull.number);
  return ok(render.review(forge, repo, review));
}

function addComment(
  { forge, repo }: Asked,
  pull: ForgePull,
  { reviewId, commitId, comment }: { readonly reviewId: number; readonly commitId: string; readonly comment: Json },
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
    createdAt: forge.now(),
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
  // GitHub puts each into a review of its own.
  const own = { number: pull.number, author: forge.app.login, body: '', state: 'COMMENTED' } as const;
  const review = { ...own, id: forge.nextId(), commitId, createdAt: forge.now() };
  repo.reviews.push(review);
  const comment = addComment(asked, pull, { reviewId: review.id, commitId, comment: body });
  forge.touch(repo, pull.number);
  return ok(render.reviewComment(forge, repo, comment), 201);
}

function deleteReview({ forge, repo, params }: Asked): Answered {
  const at = repo.reviews.findIndex(({ id }) => id === Number(params['review_id']));
  const review = repo.reviews[at];
  if (!review) throw new Refusal(404, 'Not Found');
  if (review.state !== 'PENDING') throw new Refusal(422, 'Can not delete a non-pending pull request review');
  repo.reviews.splice(at, 1);
  const kept = repo.reviewComments.filter(({ reviewId }) => reviewId !== review.id);
  repo.reviewComments.splice(0, repo.reviewComments.length, ...kept);
  return ok(render.review(forge, repo, review));
}

function reviewOf({ repo, params }: Asked): ForgeReview {
  const found = repo.reviews.find(({ id }) => id === Number(params['review_id']));
  if (!found) throw new Refusal(404, 'Not Found');
  return found;
}

const readReview = (asked: Asked): Answered => ok(render.review(asked.forge, asked.repo, reviewOf(asked)));

function submitReview(asked: Asked): Answered {
  const { forge, repo, body } = asked;
  const review = reviewOf(asked);
  if (review.state !== 'PENDING') throw new Refusal(422, 'Could not submit a review that is not pending');
  const text = checkedBody(body['body']);
  if (body['event'] !== 'COMMENT' || text === '') throw new Refusal(422, 'Unprocessable Entity');
  review.body = text;
  review.state = 'COMMENTED';
  forge.touch(repo, review.number);
  return ok(render.review(forge, repo, review));
}

function deleteReviewComment({ forge, repo, params }: Asked): Answered {
  const at = repo.reviewComments.findIndex(({ id }) => id === Number(params['comment_id']));
  const [comment] = at < 0 ? [] : repo.reviewComments.splice(at, 1);
  if (!comment) throw new Refusal(404, 'Not Found');
  forge.touch(repo, comment.number);
  return { status: 204, body: undefined };
}

function reviewCommentOf({ repo, params }: Asked): ForgeReviewComment {
  const found = repo.reviewComments.find(({ id }) => id === Number(params['comment_id']));
  if (!found) throw new Refusal(404, 'Not Found');
  return found;
}

function replyToReviewComment(asked: Asked): Answered {
  const { forge, repo, body } = asked;
  const { reviewId, ...first } = reviewCommentOf(asked);
  const made = {
    ...{ ...first, reviewId: forge.nextId(), id: forge.nextId(), author: forge.app.login },
    ...{ body: checkedBody(body['body']), createdAt: forge.now() },
  };
  repo.reviewComments.push(made);
  return ok(render.reviewComment(forge, repo, made), 201);
}

function reactToReviewComment(asked: Asked): Answered {
  const { forge, body } = asked;
  reviewCommentOf(asked);
  const made = { id: forge.nextId(), user: forge.app.login, content: word(body['content']) };
  return ok(render.reaction(made), 201);
}

function listReviews(asked: Asked): Answered {
  const { forge, repo } = asked;
  const { number } = pullOf(asked);
  const rows = listed(asked, repo.reviews).filter((each) => each.number === number);
  const shown = (each: ForgeReview) => render.review(forge, repo, each);
  return page(asked, { path: `${repoPath(asked)}/pulls/${number}/reviews`, rows, shown });
}

function listReviewComments(asked: Asked): Answered {
  const { forge, repo, query } = asked;
  const { number } = pullOf(asked);
  const pending = new Set(repo.reviews.filter(({ state }) => state === 'PENDING').map(({ id }) => id));
  const rows = listed(asked, repo.reviewComments).filter(
    (each) => each.number === number && !pending.has(each.reviewId),
  );
  if (query.get('direction') === 'desc') rows.reverse();
  const shown = (each: ForgeReviewComment) => render.reviewComment(forge, repo, each);
  return page(asked, { path: `${repoPath(asked)}/pulls/${number}/comments`, rows, shown });
}

const pull = '/repos/{owner}/{repo}/pulls/{pull_number}';
const reads = { needs: ['pull_requests:read'] };
const writes = { needs: ['pull_requests:write'] };

/** Reviews, and comments on lines and files. */
export const reviewRoutes: readonly Route[] = [
  { ...reads, method: 'GET', path: `${pull}/reviews`, handle: listReviews },
  { ...writes, method: 'POST', path: `${pull}/reviews`, handle: createReview },
  { ...reads, method: 'GET', path: `${pull}/reviews/{review_id}`, handle: readReview },
  { ...writes, method: 'POST', path: `${pull}/reviews/{review_id}/events`, handle: submitReview },
  { ...writes, method: 'DELETE', path: `${pull}/reviews/{review_id}`, handle: deleteReview },
  { ...reads, method: 'GET', path: `${pull}/comments`, handle: listReviewComments },
  { ...writes, method: 'POST', path: `${pull}/comments`, handle: createReviewComment },
  { ...writes, method: 'POST', path: `${pull}/comments/{comment_id}/replies`, handle: replyToReviewComment },
  {
    ...writes,
    method: 'POST',
    path: '/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions',
    handle: reactToReviewComment,
  },
  {
    ...writes,
    method: 'DELETE',
    path: '/repos/{owner}/{repo}/pulls/comments/{comment_id}',
    handle: deleteReviewComment,
  },
];
