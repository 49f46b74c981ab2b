import type { ThreadConfig } from '../../protocol/index.ts';
import { AgentError } from '../errors.ts';
import type { StoredThread, ThreadStore } from '../thread-store.ts';
import { timestamp } from './clock.ts';

export interface ForkOptions {
  readonly store: ThreadStore;
  readonly original: StoredThread;
  readonly newId: string;
  /** Last turn that the fork has; undefined: the last that has ended. */
  readonly atTurnId: string | undefined;
  readonly displayName: string | undefined;
  readonly config: ThreadConfig | undefined;
}

/**
 * Copies a conversation up to a turn into a thread of its own, in one commit. Rights of the session, queued inputs and processes stay
 * with the original.
 *
 * @returns the new thread and the last turn of it, undefined: it has none
 * @throws AgentError turnNotFound
 */
export function forkThread(options: ForkOptions): {
  readonly thread: StoredThread;
  readonly lastTurnId: string | undefined;
} {
  const { store, original, newId, atTurnId, displayName, config } = options;
  const all = store.turns(original.id, { limit: store.turnCount(original.id) });
  const end = atTurnId === undefined ? all.length - 1 : all.findIndex(({ id }) => id === atTurnId);
  if (atTurnId !== undefined && end === -1)
    throw new AgentError('turnNotFound', { threadId: original.id, turnId: atTurnId });
  const turns = all.slice(0, end + 1).filter(({ status }) => status !== 'running' && status !== 'waitingApproval');
  const now = timestamp();
  const thread: StoredThread = {
    ...original,
    ...(config && { config }),
    id: newId,
    displayName: displayName ?? `fork of ${original.displayName ?? original.id}`,
    forkedFromThreadId: original.id,
    createdAt: now,
    lastActiveAt: now,
  };
  const states = store.answerStates(original.id, undefined);
  const briefing = store.briefing(original.id);
  const compaction = store.compaction(original.id);
  store.transaction(() => {
    store.putThread(thread);
    for (const { items, ...turn } of turns) {
      store.putTurn({ ...turn, threadId: newId });
      for (const item of items) {
        store.putItem(newId, item);
        const state = states.get(item.id);
        if (state) store.putAnswerState(newId, item.id, state);
      }
    }
    if (briefing) store.putBriefing(newId, briefing);
    if (compaction && turns.some(({ id }) => id === compaction.throughTurnId)) store.putCompaction(newId, compaction);
  });
  return { thread, lastTurnId: turns.at(-1)?.id };
}
