import type { StoredRepository } from '../store/index.ts';
import type { JobContext } from './types.ts';

/** A comment that is to be answered. */
export interface Asked {
  readonly repository: StoredRepository;
  readonly number: number;
  readonly commentId: number;
}

/** Every answer goes through the outbox, once, and only where writes are allowed. */
async function put(
  { store, settings }: Pick<JobContext, 'store' | 'settings'>,
  { repository, number, commentId }: Asked,
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
  // Not the key of the reviews: nobody waits with an answer for a review that is being written.
  await store.putWrite(write, (writeId) => ({
    kind: 'write',
    key: `answer:${repositoryKey}#${number}`,
    payload: { writeId },
  }));
}

/** Shows that the command was heard (eyes), or done (+1). */
export const react = (context: Pick<JobContext, 'store' | 'settings'>, asked: Asked, content: 'eyes' | '+1') =>
  put(context, asked, { kind: 'reaction', name: content, request: { commentId: asked.commentId, content } });

/** Says something below the pull request. */
export const reply = (context: Pick<JobContext, 'store' | 'settings'>, asked: Asked, body: string) =>
  put(context, asked, {
    kind: 'reply',
    name: 'reply',
    request: { number: asked.number, body, marker: `<!-- oratorio:reply:${asked.commentId} -->` },
  });
