/** Requests in the outbox by kind of write (`StoredWrite.request`). */
import * as v from 'valibot';

const text = v.pipe(v.string(), v.nonEmpty());
const number = v.pipe(v.number(), v.integer(), v.minValue(1));
const side = v.picklist(['LEFT', 'RIGHT']);
const repository = { owner: text, name: text };
const pull = { ...repository, number };

const ReviewComment = v.object({
  path: text,
  body: text,
  line: number,
  side,
  startLine: v.optional(number),
  startSide: v.optional(side),
  findingId: text,
});
export type ReviewComment = v.InferOutput<typeof ReviewComment>;
export const ReviewRequest = v.object({
  ...pull,
  /** The reviewed head, even when the current head is another. */
  commitId: text,
  /** May be empty when there are comments. */
  body: v.string(),
  comments: v.array(ReviewComment),
});
export type ReviewRequest = v.InferOutput<typeof ReviewRequest>;

export const SummaryRequest = v.object({ ...pull, itemId: text, body: text });
export const CheckRunRequest = v.object({
  ...repository,
  headSha: text,
  externalId: text,
  name: v.optional(text, 'Oratorio review'),
  status: v.picklist(['queued', 'in_progress', 'completed']),
  conclusion: v.optional(
    v.picklist(['success', 'failure', 'neutral', 'cancelled', 'skipped', 'timed_out', 'action_required']),
  ),
  title: text,
  summary: v.string(),
  detailsUrl: v.optional(v.pipe(v.string(), v.url())),
});
export const ResolveThreadRequest = v.object({ ...pull, findingId: text });
export const ReactionRequest = v.object({
  ...repository,
  commentId: number,
  /** Place of the comment: the conversation of the pull request, or a thread on its lines. */
  place: v.optional(v.picklist(['conversation', 'thread']), 'conversation'),
  content: v.picklist(['+1', '-1', 'laugh', 'confused', 'heart', 'hooray', 'rocket', 'eyes']),
});
export const ReplyRequest = v.object({
  ...pull,
  body: text,
  marker: text,
  /** First comment of the thread that it belongs to; without it the reply is in the conversation. */
  threadId: v.optional(number),
});
export const FileCommentRequest = v.object({ ...pull, commitId: text, path: text, body: text, findingId: text });
