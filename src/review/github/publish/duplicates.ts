import * as v from 'valibot';
import { markers } from '../../anchors/index.ts';
import type { StoredWrite } from '../../store/index.ts';
import type { CommentAnswer } from '../answers.ts';
import { SourceError } from '../errors.ts';
import { conversation, repliesIn, reviewComments } from './comments.ts';
import { FileCommentRequest, ReplyRequest, ReviewRequest, SummaryRequest } from './requests.ts';
import { isOurs, type Target } from './target.ts';

const Sent = v.object({ commentId: v.nullish(v.number()) });
const SentReview = v.object({ comments: v.array(Sent) });

/**
 * Removes comments that GitHub made a second time: a request that was given up took effect after its repetition. The comment that the
 * write's response names stays, or else the oldest.
 *
 * @returns the number of removed comments
 * @throws SourceError
 */
export async function removeDuplicates(
  target: Target,
  { kind, request, response }: Pick<StoredWrite, 'kind' | 'request' | 'response'>,
): Promise<number> {
  const sent = v.safeParse(Sent, response);
  const kept = sent.success && typeof sent.output.commentId === 'number' ? [sent.output.commentId] : [];
  switch (kind) {
    case 'summary': {
      const { number, itemId } = v.parse(SummaryRequest, request);
      return removeSpare(target, issueComment, conversation(target, number), [markers.summary(itemId)], kept);
    }
    case 'reply': {
      const reply = v.parse(ReplyRequest, request);
      const route = reply.threadId === undefined ? issueComment : reviewComment;
      return removeSpare(target, route, repliesIn(target, reply), [reply.marker], kept);
    }
    case 'fileComment': {
      const { number, findingId } = v.parse(FileCommentRequest, request);
      return removeSpare(target, reviewComment, reviewComments(target, number), [markers.finding(findingId)], kept);
    }
    case 'review': {
      const { number, comments } = v.parse(ReviewRequest, request);
      const marks = comments.map(({ findingId }) => markers.finding(findingId));
      const placed = v.safeParse(SentReview, response);
      const ids = placed.success ? placed.output.comments.flatMap(({ commentId }) => commentId ?? []) : [];
      return marks.length === 0 ? 0 : removeSpare(target, reviewComment, reviewComments(target, number), marks, ids);
    }
    default:
      return 0;
  }
}

const issueComment = 'DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}';
const reviewComment = 'DELETE /repos/{owner}/{repo}/pulls/comments/{comment_id}';

async function removeSpare(
  target: Target,
  route: string,
  comments: AsyncIterable<CommentAnswer>,
  marks: readonly string[],
  kept: readonly number[],
): Promise<number> {
  const byMark = new Map<string, number[]>();
  for await (const comment of comments) {
    const mark = marks.find((each) => isOurs(target, comment, each));
    if (mark !== undefined) byMark.set(mark, [...(byMark.get(mark) ?? []), comment.id]);
  }
  let removed = 0;
  for (const ids of byMark.values()) {
    const keep = ids.find((id) => kept.includes(id)) ?? Math.min(...ids);
    for (const id of ids.filter((each) => each !== keep)) {
      await remove(target, route, id);
      removed += 1;
    }
  }
  return removed;
}

async function remove({ api }: Target, route: string, commentId: number): Promise<void> {
  try {
    await api.write(route, { comment_id: commentId });
  } catch (error) {
    if (!(error instanceof SourceError) || error.code !== 'notFound') throw error;
  }
}
