import { defaults } from '../../protocol/index.ts';
import { estimateTokens } from '../history.ts';
import { type ModelProvider, modelFailure } from '../model.ts';
import type { Compaction, StoredThread, ThreadStore } from '../thread-store.ts';
import { compact, conversationOf } from './compaction.ts';
import type { Tracer } from './tracer.ts';

export interface CompactThreadOptions {
  readonly thread: StoredThread;
  readonly store: ThreadStore;
  readonly provider: () => Promise<ModelProvider>;
  /** Number of newest turns that stay unchanged. */
  readonly keepRecentTurns: number;
  readonly tracer: Tracer | undefined;
  readonly publish: (kind: 'compacted' | 'compactSkipped' | 'compactFailed', message: string) => void;
}

/** Summarises a thread on request. Publishes the outcome; throws only for a bug. */
export async function compactThread({
  thread,
  store,
  provider,
  keepRecentTurns,
  tracer,
  publish,
}: CompactThreadOptions): Promise<void> {
  const { id, config } = thread;
  const earlier = store.compaction(id);
  const turns = store.turnsSince(id, earlier?.throughTurnId);
  const before = estimateTokens(conversationOf(earlier, turns));
  const signal = AbortSignal.timeout(defaults.agent.compactionMs);
  const began = performance.now();
  let done: Compaction | undefined;
  try {
    done = await compact({
      provider: await provider(),
      model: config?.model,
      turns,
      earlier,
      keepRecentTurns,
      signal,
      onUsed: (use) => tracer?.tokensUsed({ threadId: id }, use, 'compaction'),
    });
  } catch (error) {
    return publish('compactFailed', modelFailure(error, defaults.agent.compactionMs).message);
  }
  // The turns may have been rolled back, or the thread deleted, during the request.
  const stands = done && store.turn(id, done.throughTurnId) !== undefined;
  if (!done || !stands) return publish('compactSkipped', 'There is nothing old enough to be summarised.');
  store.putCompaction(id, done);
  const after = estimateTokens(conversationOf(done, store.turnsSince(id, done.throughTurnId)));
  tracer?.contextCompacted({ threadId: id }, performance.now() - began, before, after);
  publish('compacted', `Older turns were summarised: about ${before} tokens became ${after}.`);
}
