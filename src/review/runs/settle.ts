import * as v from 'valibot';
import type { ReviewStore, StoredWrite } from '../store/index.ts';

const PostedComment = v.object({ commentId: v.number(), url: v.nullable(v.string()) });
const SentReview = v.object({
  url: v.string(),
  comments: v.array(
    v.object({
      findingId: v.string(),
      commentId: v.nullable(v.number()),
      url: v.nullable(v.string()),
      placement: v.picklist(['inline', 'file', 'summary']),
    }),
  ),
});
const Resolved = v.object({ threadNodeId: v.nullable(v.string()) });
const Named = v.object({ findingId: v.string() });
const Summary = v.object({ itemId: v.string() });

type Applies = (store: ReviewStore, write: StoredWrite) => Promise<void>;
const nothing: Applies = async () => {};

/** Applies the response to each kind of write. */
const kinds: Readonly<Record<StoredWrite['kind'], Applies>> = {
  async review(store, { response, runId, request }) {
    const { comments, url } = v.parse(SentReview, response);
    for (const { findingId, commentId, url: own, placement } of comments)
      await store.updateFinding(findingId, { isPublished: true, commentId, url: own ?? url, placement });
    await listed(store, runId, url, comments.length === 0 ? [] : commentsOf(request));
  },
  async summary(store, { request, response }) {
    const { commentId } = v.parse(PostedComment, response);
    await store.updateItem(v.parse(Summary, request).itemId, { summaryCommentId: commentId });
  },
  async fileComment(store, { request, response }) {
    const { commentId, url } = v.parse(PostedComment, response);
    await store.updateFinding(v.parse(Named, request).findingId, { isPublished: true, commentId, url });
  },
  async resolveThread(store, { request, response }) {
    const { threadNodeId } = v.parse(Resolved, response);
    await store.updateFinding(v.parse(Named, request).findingId, { threadNodeId });
  },
  checkRun: nothing,
  reaction: nothing,
  reply: nothing,
};

const commentsOf = (request: StoredWrite['request']): readonly string[] => {
  const parsed = v.safeParse(v.object({ comments: v.array(Named) }), request);
  return parsed.success ? parsed.output.comments.map(({ findingId }) => findingId) : [];
};

/** Marks the findings in the summary as published. */
async function listed(store: ReviewStore, runId: string | null, url: string, inline: readonly string[]): Promise<void> {
  const draft = runId === null ? undefined : await store.draftOfRun(runId);
  for (const { findingId, placement, status } of draft?.findings ?? []) {
    if (placement === 'summary' && status === 'accepted' && !inline.includes(findingId))
      await store.updateFinding(findingId, { isPublished: true, url });
  }
}

/** Stores the response to a sent write; a failed write has none. */
export async function applyWrite(store: ReviewStore, write: StoredWrite): Promise<void> {
  if (write.status === 'sent') await kinds[write.kind](store, write);
}
