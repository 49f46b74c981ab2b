import { markers } from '../../anchors/index.ts';
import { ReviewAnswer, ReviewList } from '../answers.ts';
import { parseAnswer } from '../client.ts';
import { SourceError } from '../errors.ts';
import { reviewComments, sendFileComment } from './comments.ts';
import { type Isolation, isolate } from './isolate.ts';
import { findPatiently, once } from './once.ts';
import type { ReviewComment, ReviewRequest } from './requests.ts';
import { isByUs, isOurs, type Target } from './target.ts';
import { cut, marked } from './text.ts';

export interface SentComment {
  readonly findingId: string;
  /** Null: it is told in the text of the review. */
  readonly commentId: number | null;
  readonly url: string | null;
  readonly placement: 'inline' | 'file' | 'summary';
}
export interface SentReview {
  readonly reviewId: number;
  readonly url: string;
  readonly comments: readonly SentComment[];
}

/**
 * Publishes a review, once. GitHub refuses all of it for one line that is not in the diff, and does not say which: those
 * comments are found out and told at their file, or in the text of the review when that is refused too.
 * @throws SourceError
 */
export async function sendReview(target: Target, request: ReviewRequest): Promise<SentReview> {
  const marker = markers.review(target.runId ?? target.dedupeKey);
  const find = () => findReview(target, request, marker);
  const review = await once(target, find, () => publish(target, request, marker));
  return { reviewId: review.id, url: review.html_url, comments: await placesOf(target, request, review) };
}

const reviewsRoute = '/repos/{owner}/{repo}/pulls/{pull_number}/reviews';

/** Also clears away a review of ours that was begun and not sent: while there is one GitHub takes no other. */
async function findReview(
  target: Target,
  { number }: ReviewRequest,
  marker: string,
): Promise<ReviewAnswer | undefined> {
  let found: ReviewAnswer | undefined;
  for await (const { data } of target.api.pages(`GET ${reviewsRoute}`, { pull_number: number })) {
    for (const review of parseAnswer(ReviewList, data, 'reviews')) {
      if (review.state === 'PENDING') {
        if (isByUs(target.app.slug, review.user?.login)) await removePending(target, number, review.id);
      } else if (isOurs(target, review, marker)) found ??= review;
    }
  }
  return found;
}

async function publish(target: Target, request: ReviewRequest, marker: string): Promise<ReviewAnswer> {
  try {
    return await post(target, request, { event: 'COMMENT', body: marked(request.body, marker) });
  } catch (error) {
    if (!isRefusal(error) || request.comments.length === 0) throw error;
    return await publishRest(target, request, marker, await isolate(target, request, probe, error));
  }
}

async function publishRest(
  target: Target,
  request: ReviewRequest,
  marker: string,
  { good, bad }: Isolation,
): Promise<ReviewAnswer> {
  const listed: ReviewComment[] = [];
  for (const comment of bad) {
    if (!(await toldAtFile(target, request, comment))) listed.push(comment);
  }
  const body = marked(withList(request.body, listed), marker);
  return post(target, { ...request, comments: [...good] }, { event: 'COMMENT', body });
}

/** @returns whether GitHub took it */
async function toldAtFile(target: Target, request: ReviewRequest, comment: ReviewComment): Promise<boolean> {
  const { number, commitId } = request;
  // A suggestion can be applied only at its lines.
  const body = comment.body.replace(/^(`{3,})suggestion$/gm, '$1');
  try {
    await sendFileComment(target, { ...request, number, commitId, ...comment, body });
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

/** Room for each of what is listed, so that the last one is told too. */
const listedRoom = 40_000;

function withList(body: string, listed: readonly ReviewComment[]): string {
  if (listed.length === 0) return body;
  const room = Math.floor(listedRoom / listed.length);
  const entries = listed.map((comment) => {
    const marker = markers.finding(comment.findingId);
    return `**${comment.path.replace(/[\\`*_<>[\]]/g, '\\$&')}:${comment.line}**\n\n${cut(comment.body.replaceAll(marker, '').trim(), room)}\n\n${marker}`;
  });
  return [cut(body, 20_000), '---', ...entries].join('\n\n');
}

/** Whether GitHub would take these comments: as a review that is begun, and taken back. */
async function probe(target: Target, request: ReviewRequest): Promise<boolean> {
  try {
    const { id } = await post(target, request, { body: 'Looking at which lines can be commented.' });
    await removePending(target, request.number, id);
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

async function post(
  { api }: Target,
  { number, commitId, comments }: ReviewRequest,
  content: { readonly event?: 'COMMENT'; readonly body: string },
): Promise<ReviewAnswer> {
  const { data } = await api.write(`POST ${reviewsRoute}`, {
    pull_number: number,
    commit_id: commitId,
    ...content,
    comments: comments.map(wireComment),
  });
  return parseAnswer(ReviewAnswer, data, 'a review');
}

function wireComment({ path, body, line, side, startLine, startSide, findingId }: ReviewComment) {
  const isLong = startLine !== undefined && startLine < line;
  const text = marked(body, markers.finding(findingId));
  return { path, body: text, line, side, ...(isLong && { start_line: startLine, start_side: startSide ?? side }) };
}

async function removePending({ api }: Target, number: number, reviewId: number): Promise<void> {
  try {
    const { data } = await api.write(`DELETE ${reviewsRoute}/{review_id}`, {
      pull_number: number,
      review_id: reviewId,
    });
    // One that is still there would have every later review refused, and its comments taken for the reason.
    parseAnswer(ReviewAnswer, data, 'a review');
  } catch (error) {
    // It is gone already: another attempt of ours took it back.
    if (!(error instanceof SourceError) || error.code !== 'notFound') throw error;
  }
}

export const isRefusal = (error: unknown): error is SourceError => error instanceof SourceError && error.status === 422;

/** Where each finding has come to stand, by its marker: what is not in the text of the review has a comment, sooner or later. */
async function placesOf(target: Target, request: ReviewRequest, review: ReviewAnswer): Promise<SentComment[]> {
  const places = new Map<string, SentComment>();
  const awaited = request.comments.filter(({ findingId }) => !review.body?.includes(markers.finding(findingId)));
  if (awaited.length > 0) {
    await findPatiently(target.limits, async () => {
      await findPlaces(target, request.number, { awaited, reviewId: review.id, places });
      return places.size === awaited.length || undefined;
    });
  }
  return request.comments.map(
    ({ findingId }) => places.get(findingId) ?? { findingId, commentId: null, url: null, placement: 'summary' },
  );
}

interface Search {
  readonly awaited: readonly ReviewComment[];
  readonly reviewId: number;
  readonly places: Map<string, SentComment>;
}

async function findPlaces(target: Target, number: number, { awaited, reviewId, places }: Search): Promise<void> {
  for await (const comment of reviewComments(target, number)) {
    const found = awaited.find(({ findingId }) => isOurs(target, comment, markers.finding(findingId)));
    if (!found || places.has(found.findingId)) continue;
    const placement = comment.pull_request_review_id === reviewId ? 'inline' : 'file';
    const { findingId } = found;
    places.set(findingId, { findingId, commentId: comment.id, url: comment.html_url, placement });
    if (places.size === awaited.length) break;
  }
}
