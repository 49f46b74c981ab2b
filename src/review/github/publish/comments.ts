import type * as v from 'valibot';
import { markers } from '../../anchors/index.ts';
import { CommentAnswer, CommentList } from '../answers.ts';
import { parseAnswer } from '../client.ts';
import { once } from './once.ts';
import type { FileCommentRequest, ReplyRequest, SummaryRequest } from './requests.ts';
import { isOurs, type Target } from './target.ts';
import { marked } from './text.ts';

interface Place {
  readonly number: number;
}
type Told = { readonly commentId: number; readonly url: string };
const told = ({ id, html_url }: CommentAnswer): Told => ({ commentId: id, url: html_url });

/** The first comment of the conversation that is ours and has the marker. */
async function findComment(target: Target, { number }: Place, marker: string): Promise<CommentAnswer | undefined> {
  const route = 'GET /repos/{owner}/{repo}/issues/{issue_number}/comments';
  for await (const { data } of target.api.pages(route, { issue_number: number })) {
    const found = parseAnswer(CommentList, data, 'comments').find((comment) => isOurs(target, comment, marker));
    if (found) return found;
  }
}

async function makeComment({ api }: Target, { number }: Place, body: string): Promise<CommentAnswer> {
  const { data } = await api.write('POST /repos/{owner}/{repo}/issues/{issue_number}/comments', {
    issue_number: number,
    body,
  });
  return parseAnswer(CommentAnswer, data, 'a comment');
}

/** One summary per pull request: made the first time, edited from then on. */
export async function sendSummary(target: Target, request: v.InferOutput<typeof SummaryRequest>): Promise<Told> {
  const marker = markers.summary(request.itemId);
  const body = marked(request.body, marker);
  const find = () => findComment(target, request, marker);
  const comment = await once(target, find, () => makeComment(target, request, body));
  if (comment.body === body) return told(comment);
  const { data } = await target.api.write('PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}', {
    comment_id: comment.id,
    body,
  });
  return told(parseAnswer(CommentAnswer, data, 'a comment'));
}

/** An answer in the conversation. */
export async function sendReply(target: Target, request: v.InferOutput<typeof ReplyRequest>): Promise<Told> {
  const { marker } = request;
  const find = () => findComment(target, request, marker);
  return told(await once(target, find, () => makeComment(target, request, marked(request.body, marker))));
}

/** Comments on lines and files, newest first. */
export async function* reviewComments({ api }: Target, number: number): AsyncGenerator<CommentAnswer, void> {
  const route = 'GET /repos/{owner}/{repo}/pulls/{pull_number}/comments';
  const newestFirst = { pull_number: number, sort: 'created', direction: 'desc' };
  for await (const { data } of api.pages(route, newestFirst)) yield* parseAnswer(CommentList, data, 'review comments');
}

/** A comment on a file as a whole, for what has no line. */
export async function sendFileComment(
  target: Target,
  request: v.InferOutput<typeof FileCommentRequest>,
): Promise<Told> {
  const marker = markers.finding(request.findingId);
  const { number, commitId, path, body } = request;
  const find = async () => {
    for await (const comment of reviewComments(target, number)) if (isOurs(target, comment, marker)) return comment;
    return;
  };
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
  return told(await once(target, find, make));
}
