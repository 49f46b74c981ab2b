import { markers } from '../../anchors/index.ts';
import { ReviewAnswer, ReviewList } from '../answers.ts';
import { parseAnswer } from '../client.ts';
import { SourceError } from '../errors.ts';
import { reviewComments, sendFileComment } from './comments.ts';
import { type Isolation, isolate } from './isolate.ts';
import { findPatiently, lookThenMake } from './once.ts';
import type { ReviewComment, ReviewRequest } from './requests.ts';
import { isByUs, isOurs, type Target } from './target.ts';
import { cut, marked } from './text.ts';

export interface SentComment {
  readonly findingId: string;
  /** Null: the finding stands in the text of the review. */
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
 * Publishes a review exactly once, even when GitHub carries out an abandoned request late. The review is created as a pending
 * one, which only its author sees; its id is saved; then this id is submitted. GitHub submits a review once, and only the saved id
 * is ever submitted for a write, so a late creation leaves a pending review, which the next search removes.
 *
 * GitHub refuses all comments for one line that is not in the diff, without naming it: such comments go to their file, or into the
 * text of the review when the file is refused too.
 * @throws SourceError
 */
export async function sendReview(target: Target, request: ReviewRequest): Promise<SentReview> {
  const marker = markers.review(target.runId ?? target.dedupeKey);
  const review = (await resume(target, request, marker)) ?? (await publish(target, request, marker));
  return { reviewId: review.id, url: review.html_url, comments: await placesOf(target, request, review) };
}

const reviewsRoute = '/repos/{owner}/{repo}/pulls/{pull_number}/reviews';
const reviewRoute = `${reviewsRoute}/{review_id}`;
const isPending = ({ state }: ReviewAnswer): boolean => state === 'PENDING';

/** Submits the review that an earlier attempt saved. @returns undefined when none was saved, or GitHub no longer has it */
async function resume(target: Target, request: ReviewRequest, marker: string): Promise<ReviewAnswer | undefined> {
  const id = await target.fence.load();
  if (id === null) return undefined;
  const known = await readReview(target, request.number, id);
  if (known && !isPending(known)) return known;
  // A read may lag behind: only the answer to the submission proves that the review is gone.
  return submit(target, request.number, { id, body: known?.body || marked(request.body, marker) });
}

async function publish(target: Target, request: ReviewRequest, marker: string): Promise<ReviewAnswer> {
  const find = () => findReview(target, request, marker);
  const review = await lookThenMake(target, find, () => begin(target, request, marker));
  if (!isPending(review)) return review;
  await target.fence.save(review.id);
  const { id, body } = review;
  const submitted = await submit(target, request.number, { id, body: body || marked(request.body, marker) });
  if (submitted) return submitted;
  throw new SourceError(
    'sourceUnavailable',
    `GitHub no longer has the pending review ${id}; a new attempt makes another`,
  );
}

/**
 * The review with our marker: the submitted one before the pending one. Removes every other pending review of ours, because GitHub
 * takes no second one.
 */
async function findReview(
  target: Target,
  { number }: ReviewRequest,
  marker: string,
): Promise<ReviewAnswer | undefined> {
  const found: ReviewAnswer[] = [];
  const pending: ReviewAnswer[] = [];
  for await (const { data } of target.api.pages(`GET ${reviewsRoute}`, { pull_number: number })) {
    for (const review of parseAnswer(ReviewList, data, 'reviews')) {
      if (isOurs(target, review, marker)) found.push(review);
      if (isPending(review) && isByUs(target.app.slug, review.user?.login)) pending.push(review);
    }
  }
  const chosen = found.find((review) => !isPending(review)) ?? found[0];
  for (const review of pending) if (review !== chosen) await removePending(target, number, review.id);
  return chosen;
}

async function readReview({ api }: Target, number: number, reviewId: number): Promise<ReviewAnswer | undefined> {
  try {
    const { data } = await api.read(`GET ${reviewRoute}`, { pull_number: number, review_id: reviewId });
    return parseAnswer(ReviewAnswer, data, 'a review');
  } catch (error) {
    if (error instanceof SourceError && error.code === 'notFound') return undefined;
    throw error;
  }
}

/**
 * Makes a pending review public. Repeating it does no harm: a review is submitted once.
 * @returns undefined when GitHub no longer has it
 * @throws SourceError
 */
async function submit(
  target: Target,
  number: number,
  { id, body }: { readonly id: number; readonly body: string },
): Promise<ReviewAnswer | undefined> {
  try {
    const parameters = { pull_number: number, review_id: id, event: 'COMMENT', body };
    const { data } = await target.api.write(`POST ${reviewRoute}/events`, parameters);
    return parseAnswer(ReviewAnswer, data, 'a review');
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    if (error.code === 'notFound') return undefined;
    if (!error.mayHaveHappened && !isRefusal(error)) throw error;
    const submitted = await findPatiently(target.limits, async () => {
      const review = await readReview(target, number, id);
      return review && !isPending(review) ? review : undefined;
    });
    if (submitted) return submitted;
    throw error;
  }
}

/** Creates the pending review. */
async function begin(target: Target, request: ReviewRequest, marker: string): Promise<ReviewAnswer> {
  try {
    return await create(target, request, marked(request.body, marker));
  } catch (error) {
    if (!isRefusal(error) || request.comments.length === 0) throw error;
    return await beginWithoutBad(target, request, marker, await isolate(target, request, probe, error));
  }
}

async function beginWithoutBad(
  target: Target,
  request: ReviewRequest,
  marker: string,
  { good, bad }: Isolation,
): Promise<ReviewAnswer> {
  const listed: ReviewComment[] = [];
  for (const comment of bad) {
    if (!(await toldAtFile(target, request, comment))) listed.push(comment);
  }
  return create(target, { ...request, comments: [...good] }, marked(withList(request.body, listed), marker));
}

/** Publishes a comment on its file. @returns whether GitHub took it */
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

/** Room for all listed comments together, in characters, so that the last one is in the text too. */
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

/** Whether GitHub takes these comments: creates a pending review with them and removes it. */
async function probe(target: Target, request: ReviewRequest): Promise<boolean> {
  try {
    const { id } = await create(target, request, 'Finding out which lines can be commented.');
    await removePending(target, request.number, id);
    return true;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

/** Attempts to create a pending review while GitHub reports an existing one. */
const creations = 3;

/** Creates a pending review, and first removes one that a late request has left. @throws SourceError */
async function create(target: Target, request: ReviewRequest, body: string): Promise<ReviewAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await post(target, request, body);
    } catch (error) {
      if (!isRefusal(error) || !/one pending review/i.test(error.message)) throw error;
      if (attempt >= creations) throw new SourceError('sourceUnavailable', 'A pending review of ours is in the way');
      await findReview(target, request, noMarker);
    }
  }
}

/** Marker of no review, for which all our pending reviews are removed. */
const noMarker = '<!-- oratorio:none -->';

async function post(
  { api }: Target,
  { number, commitId, comments }: ReviewRequest,
  body: string,
): Promise<ReviewAnswer> {
  const { data } = await api.write(`POST ${reviewsRoute}`, {
    pull_number: number,
    commit_id: commitId,
    body,
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
    const { data } = await api.write(`DELETE ${reviewRoute}`, { pull_number: number, review_id: reviewId });
    // A remaining review would make GitHub refuse every later one, and its comments would be taken for the reason.
    parseAnswer(ReviewAnswer, data, 'a review');
  } catch (error) {
    // Another attempt of ours has removed the review (404) or submitted it (422).
    if (!isRefusal(error) && !(error instanceof SourceError && error.code === 'notFound')) throw error;
  }
}

export const isRefusal = (error: unknown): error is SourceError => error instanceof SourceError && error.status === 422;

/** The place of each finding, by its marker. A finding that is not in the text of the review has a comment, once lists show it. */
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
