import { markers } from '../anchors/index.ts';
import type { StoredRepository } from '../store/index.ts';
import type { JobContext } from './types.ts';

/** Comment to reply to. */
export interface CommentTarget {
  readonly repository: StoredRepository;
  readonly number: number;
  readonly commentId: number;
}

/** Adds a reply or reaction to the outbox, once per comment and name, if writes are enabled. */
async function put(
  { store, settings }: Pick<JobContext, 'store' | 'settings'>,
  { repository, number, commentId }: CommentTarget,
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
    dedupeKey: `${what.kind}:${repositoryKey}:${commentId}:${what.name}`,
    repositoryKey,
    runId: null,
    request: { owner, name, ...what.request },
  };
  // A key of its own, so that a reply does not wait for the writes of a review.
  await store.putWrite(write, (writeId) => ({
    kind: 'write',
    key: `answer:${repositoryKey}#${number}`,
    payload: { writeId },
  }));
}

/** Reacts to a command: `eyes` when it was received, `+1` when it was executed. */
export const react = (context: Pick<JobContext, 'store' | 'settings'>, target: CommentTarget, content: 'eyes' | '+1') =>
  put(context, target, { kind: 'reaction', name: content, request: { commentId: target.commentId, content } });

/**
 * Comments on the pull request of a command.
 *
 * @param refusal code of a refusal, because a command that is sent again can be refused first and answered later
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
    request: { number: target.number, body, marker: markers.reply(target.commentId, refusal) },
  });
