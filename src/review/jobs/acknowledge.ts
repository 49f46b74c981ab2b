import { markers } from '../anchors/index.ts';
import type { StoredRepository } from '../store/index.ts';
import type { JobContext } from './types.ts';

/** Comment to reply to. */
export interface CommentTarget {
  readonly repository: StoredRepository;
  readonly number: number;
  readonly commentId: number;
  /** A comment of the conversation, a comment on lines, or the text of a review. */
  readonly place: 'conversation' | 'thread' | 'review';
  /** First comment of its thread; null outside of a thread. */
  readonly threadId: number | null;
}

/** Adds a reply or reaction to the outbox, once per comment and name, if writes are enabled. */
async function put(
  { store, settings }: Pick<JobContext, 'store' | 'settings'>,
  { repository, number, commentId, place }: CommentTarget,
  what: {
    readonly kind: 'reaction' | 'reply';
    readonly name: string;
    readonly request: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  if (!settings().GitHub.WritesEnabled) return;
  const { repositoryKey, owner, name } = repository;
  const write = {
    kind: what.kind,
    // Comments of each place have separate ids.
    dedupeKey: `${what.kind}:${repositoryKey}:${place === 'conversation' ? '' : `${place}:`}${commentId}:${what.name}`,
    repositoryKey,
    runId: null,
    request: { owner, name, ...what.request },
  };
  // A separate key, so that a reply does not wait for the writes of a review.
  await store.putWrite(write, (writeId) => ({
    kind: 'write',
    key: `answer:${repositoryKey}#${number}`,
    payload: { writeId },
  }));
}

/**
 * Reacts to a command: `eyes` when it was received, `+1` when it was executed. The text of a review takes no reactions: a reply
 * confirms the execution.
 */
export async function react(
  context: Pick<JobContext, 'store' | 'settings'>,
  target: CommentTarget,
  content: 'eyes' | '+1',
): Promise<void> {
  const { commentId, place } = target;
  if (place !== 'review')
    return put(context, target, { kind: 'reaction', name: content, request: { commentId, content, place } });
  if (content === '+1') await reply(context, target, 'Done.');
}

/**
 * Answers a command: in its thread, or else in the conversation.
 *
 * @param refusal code of a refusal, because a command sent again can be refused first and answered later
 */
export const reply = (
  context: Pick<JobContext, 'store' | 'settings'>,
  target: CommentTarget,
  body: string,
  refusal?: string,
) =>
  put(context, target, {
    kind: 'reply',
    name: refusal === undefined ? 'reply' : `reply:${refusal}`,
    request: {
      ...{ number: target.number, body, marker: markers.reply(target.commentId, refusal) },
      ...(target.threadId !== null && { threadId: target.threadId }),
    },
  });
