import { defaults } from '../../../protocol/index.ts';
import { compactionLimits, conversationOf, requestsOf, summarise } from '../../context/index.ts';
import { modelFailure } from '../../model.ts';
import type { Compaction, StoredThread, ThreadStore } from '../../thread-store.ts';
import { bytesPerToken, estimateTokens } from '../../tokens.ts';
import type { RuntimeServices } from '../services.ts';

const { olderRequestTokens, transcriptShare } = compactionLimits;

/** Summarises a thread on request. Publishes the outcome; throws only for a bug. */
export async function compactThread(
  { provider, settings, tracer, spending, feed }: RuntimeServices,
  { id, config }: StoredThread,
  store: ThreadStore,
): Promise<void> {
  const { keepRecentTurns } = settings.compaction;
  const publish = (kind: 'compacted' | 'compactSkipped' | 'compactFailed', message: string) =>
    feed.publish(id, { method: 'system/event', params: { threadId: id, kind, message } });
  const earlier = store.compaction(id);
  const turns = store.turnsSince(id, earlier);
  const old = turns.slice(0, Math.max(0, turns.length - keepRecentTurns)).flatMap(({ items }) => items);
  const last = old.at(-1);
  if (!last) return publish('compactSkipped', 'There is nothing old enough to be summarised.');
  const before = estimateTokens(conversationOf(earlier, turns));
  const signal = AbortSignal.timeout(defaults.agent.compactionMs);
  const began = performance.now();
  let summary: string;
  try {
    const models = await provider();
    const window = models.facts?.(config?.model).contextWindow ?? defaults.upstream.contextWindow;
    summary = await summarise({
      provider: models,
      model: config?.model,
      items: old,
      earlier: earlier?.summary,
      transcriptBytes: window * transcriptShare * bytesPerToken,
      signal,
      onUsed: (use) => {
        spending.add(use.costUsd ?? 0);
        addCost(store, id, turns.at(-1)?.id, use.costUsd ?? 0);
        tracer?.tokensUsed({ threadId: id }, use, { purpose: 'compaction' });
      },
    });
  } catch (error) {
    return publish('compactFailed', modelFailure(error, defaults.agent.compactionMs).message);
  }
  // The turns may have been rolled back, or the thread deleted, during the request.
  if (!store.turn(id, last.turnId)) {
    return publish('compactSkipped', 'There is nothing old enough to be summarised.');
  }
  const done: Compaction = {
    throughTurnId: last.turnId,
    summary,
    requests: requestsOf(old, earlier?.requests ?? [], () => false, olderRequestTokens * bytesPerToken),
    at: new Date().toISOString(),
  };
  store.putCompaction(id, done);
  const after = estimateTokens(conversationOf(done, store.turnsSince(id, done)));
  tracer?.contextCompacted({ threadId: id }, performance.now() - began, before, after);
  publish('compacted', `Older turns were summarised: about ${before} tokens became ${after}.`);
}

/** Adds the cost of a summary to the turn before it, because the budget of a thread is the cost of its turns. */
function addCost(store: ThreadStore, threadId: string, turnId: string | undefined, costUsd: number): void {
  const turn = turnId === undefined ? undefined : store.turn(threadId, turnId);
  if (!turn || costUsd === 0) return;
  const { inputTokens = 0, outputTokens = 0, totalTokens = 0, ...usage } = turn.tokenUsage ?? {};
  const cost = { costUsd: (turn.tokenUsage?.costUsd ?? 0) + costUsd };
  store.putTurn({ ...turn, tokenUsage: { ...usage, inputTokens, outputTokens, totalTokens, ...cost } });
}
