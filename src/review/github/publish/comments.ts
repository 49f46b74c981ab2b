import type * as v from 'valibot';
import { markers } from '../../anchors/index.ts';
import { CommentAnswer, CommentList } from '../answers.ts';
import { parseAnswer } from '../client.ts';
import { SourceError } from '../errors.ts';
import { once } from './once.ts';
import type { FileCommentRequest, ReplyRequest, SummaryRequest } from './requests.ts';
import { isOurs, type Target } from './target.ts';
import { marked } from './text.ts';

type SentComment = { readonly commentId: number; readonly url: string };
const sent = ({ id, html_url }: CommentAnswer): SentComment => ({ commentId: id, url: html_url });

/** Comments of the conversation, oldest first. */
export async function* conversation({ api }: Target, number: number): AsyncGenerator<CommentAnswer, void> {
  const route = 'GET /repos/{owner}/{repo}/issues/{issue_number}/comments';
  for await (const { data } of api.pages(route, { issue_number: number }))
    yield* parseAnswer(CommentList, data, 'comments');
}

/** Finds our first comment with the marker. */
async function findMarked(
  target: Target,
  comments: AsyncIterable<CommentAnswer>,
  marker: string,
): Promise<CommentAnswer | undefined> {
  for await (const comment of comments) if (isOurs(target, comment, marker)) return comment;
  return undefined;
}

async function makeComment({ api }: Target, number: number, body: string): Promise<CommentAnswer> {
  const { data } = await api.write('POST /repos/{owner}/{repo}/issues/{issue_number}/comments', {
    issue_number: number,
    body,
  });
  return parseAnswer(CommentAnswer, data, 'a comment');
}

/** Sends the summary. Each pull request has one: made the first time, edited from then on. */
export async function sendSummary(target: Target, request: v.InferOutput<typeof SummaryRequest>): Promise<SentComment> {
  const marker = markers.summary(request.itemId);
  const body = marked(request.body, marker);
  const find = () => findMarked(target, conversation(target, request.number), marker);
  const comment = await once(target, find, () => makeComment(target, request.number, body));
  if (comment.body === body) return sent(comment);
  const { data } = await target.api.write('PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}', {
    comment_id: comment.id,
    body,
  });
  return sent(parseAnswer(CommentAnswer, data, 'a comment'));
}

/** A reply in the conversation, or in a thread on lines. */
export async function sendReply(target: Target, request: v.InferOutput<typeof ReplyRequest>): Promise<SentComment> {
  const { marker, number, threadId } = request;
  const body = marked(request.body, marker);
  const find = async () =>
    (await findMarked(target, repliesIn(target, request), marker)) ??
    (threadId === undefined ? undefined : await findMarked(target, conversation(target, number), marker));
  const make = () =>
    threadId === undefined ? makeComment(target, number, body) : makeThreadReply(target, { number, threadId }, body);
  return sent(await once(target, find, make));
}

/** Comments among which a reply stands. */
export const repliesIn = (target: Target, { number, threadId }: v.InferOutput<typeof ReplyRequest>) =>
  threadId === undefined ? conversation(target, number) : reviewComments(target, number);

/** Replies in a thread; in the conversation when the source refuses that, for example because the thread was deleted. */
async function makeThreadReply(
  target: Target,
  { number, threadId }: { readonly number: number; readonly threadId: number },
  body: string,
): Promise<CommentAnswer> {
  const route = 'POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies';
  try {
    const { data } = await target.api.write(route, { pull_number: number, comment_id: threadId, body });
    return parseAnswer(CommentAnswer, data, 'a comment');
  } catch (error) {
    const isRefused = error instanceof SourceError && ['notFound', 'rejected'].includes(error.code);
    if (!isRefused) throw error;
    return makeComment(target, number, body);
  }
}

/** Comments on lines and files, newest first. */
export async function* reviewComments({ api }: Target, number: number): AsyncGenerator<CommentAnswer, void> {
  const route = 'GET /repos/{owner}/{repo}/pulls/{pull_number}/comments';
  const newestFirst = { pull_number: number, sort: 'created', direction: 'desc' };
  for await (const { data } of api.pages(route, newestFirst)) yield* parseAnswer(CommentList, data, 'review comments');
}

/** Comments on a file as a whole, for a finding without a line. */
export async function sendFileComment(
  target: Target,
  request: v.InferOutput<typeof FileCommentRequest>,
): Promise<SentComment> {
  const marker = markers.finding(request.findingId);
  const { number, commitId, path, body } = request;
  const find = () => findMarked(target, reviewComments(target, number), marker);
  const make = async () => {
    const { data } = await target.api.write('POST /repos/{owner}/{repo}/pulls/{pull_number}/comments', {
      pull_number: number,
      commit_id: commitId,
      path,
      body: marked(body, marker),
      subject_type: 'file',
    });
    return parseAnswer(CommentAnswer, data, 'a comment');
  };
  return sent(await once(target, find, make));
}
