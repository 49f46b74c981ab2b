import { defaults, type Thread, type ThreadConfig, type ThreadSummary } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { ModelProvider } from '../../model.ts';
import type { StoredThread, TraceStore } from '../../thread-store.ts';
import { bytesPerToken } from '../../tokens.ts';
import { timestamp } from '../clock.ts';
import type { Feed } from '../feed.ts';
import type { Tracer } from '../tracer.ts';
import type { RuntimeSettings } from '../turn/index.ts';
import type { ListThreads, ReadThread, StartThread, ThreadProcesses } from '../types.ts';
import { compactThread } from './compact.ts';
import { recordRace } from './race-record.ts';
import type { ThreadRegistry } from './registry.ts';
import type { ThreadTools } from './tools.ts';
import type { DaySpending, Turns } from './turns.ts';
import { requireSamePlace, withRealPath } from './worktree.ts';

export interface ThreadCatalogOptions {
  readonly workspacePath: string;
  /** See `ThreadServiceOptions`. */
  readonly worktreeRoots: readonly string[];
  readonly registry: ThreadRegistry;
  readonly feed: Feed;
  readonly tools: ThreadTools;
  readonly turns: Turns;
  readonly tracer: Tracer | undefined;
  readonly traces: TraceStore | undefined;
  readonly provider: () => Promise<ModelProvider>;
  readonly compaction: RuntimeSettings['compaction'];
  /** Window of a model in tokens, of the default one without a name. */
  readonly windowOf: (model?: string) => number;
  readonly spending: DaySpending;
  readonly processes: ThreadProcesses | undefined;
  readonly onDeleted: ((threadId: string) => void) | undefined;
}

/** Creates, lists, reads, changes and deletes threads. */
export class ThreadCatalog {
  readonly #options: ThreadCatalogOptions;
  readonly #registry: ThreadCatalogOptions['registry'];
  readonly #feed: ThreadCatalogOptions['feed'];
  readonly #turns: ThreadCatalogOptions['turns'];
  readonly #tools: ThreadCatalogOptions['tools'];
  readonly #tracer: ThreadCatalogOptions['tracer'];

  constructor(options: ThreadCatalogOptions) {
    this.#options = options;
    this.#registry = options.registry;
    this.#feed = options.feed;
    this.#turns = options.turns;
    this.#tools = options.tools;
    this.#tracer = options.tracer;
  }

  start({ identity, displayName, config, dynamicTools, isEphemeral = false, threadId }: StartThread) {
    const now = timestamp();
    const thread: StoredThread = {
      id: threadId ?? this.#registry.newId(now, isEphemeral),
      workspacePath: this.#options.workspacePath,
      status: 'active',
      ...(displayName !== undefined && { displayName }),
      ...(identity !== undefined && { identity }),
      ...configured(config && withRealPath(config, this.#options.worktreeRoots)),
      createdAt: now,
      lastActiveAt: now,
    };
    if (dynamicTools) this.#tools.register(thread.id, dynamicTools);
    this.#registry.add(thread, isEphemeral);
    this.#tracer?.sessionStarted(thread);
    const announce = () => {
      if (!isEphemeral) this.#feed.broadcast({ method: 'thread/started', params: { thread } });
    };
    return { thread, announce };
  }

  list({ identity, channelName = identity?.channelName, includeArchived = false }: ListThreads): ThreadSummary[] {
    return this.#registry.durable.store
      .threads()
      .filter(({ parentThreadId }) => parentThreadId === undefined)
      .filter((thread) => includeArchived || thread.status !== 'archived')
      .filter((thread) => channelName === undefined || thread.identity?.channelName === channelName)
      .filter((thread) => identity?.userId === undefined || thread.identity?.userId === identity.userId)
      .map((thread) => ({ ...thread, runtime: this.#turns.runtimeOf(thread.id) }));
  }

  read(threadId: string, { includeTurns, turnLimit = defaults.agent.turnPage, beforeTurnId }: ReadThread): Thread {
    const thread = this.#registry.get(threadId);
    const { store, journal } = this.#registry.storageOf(threadId);
    const running = this.#options.processes?.list(threadId) ?? [];
    const queuedInputs = [...store.queue(threadId)];
    const live = { queuedInputs, ...(running.length > 0 && { backgroundProcesses: running }) };
    if (!includeTurns) return { ...thread, ...live };
    journal.flush();
    const turns = store.turns(threadId, { limit: turnLimit + 1, before: beforeTurnId });
    const page = turns.slice(-turnLimit).map((turn) => this.#turns.current(turn));
    return {
      ...thread,
      ...live,
      turns: page,
      hasOlderTurns: turns.length > turnLimit,
      contextUsage: this.#contextUsage(thread),
    };
  }

  rename(threadId: string, displayName: string): () => void {
    this.#registry.update(threadId, { displayName });
    return () => this.#feed.broadcast({ method: 'thread/renamed', params: { threadId, displayName } });
  }

  archive(threadId: string, isArchived: boolean): () => void {
    const status = isArchived ? 'archived' : 'active';
    if (isArchived) this.#idleThread(threadId);
    if (this.#registry.get(threadId).status === status) return () => undefined;
    this.#registry.update(threadId, { status });
    if (isArchived) {
      void this.#options.processes?.endThread(threadId);
      this.#tracer?.sessionCompleted(threadId, 'archived');
    }
    return () => this.#feed.broadcast({ method: 'thread/statusChanged', params: { threadId, status } });
  }

  async stopProcess(threadId: string, processId: string): Promise<void> {
    this.#registry.get(threadId);
    if (!(await this.#options.processes?.stop(threadId, processId))) {
      throw new AgentError('processNotFound', { threadId, processId });
    }
  }

  async delete(threadId: string): Promise<() => void> {
    this.#registry.get(threadId);
    // A turn that completes before the interrupt starts the next input of the queue.
    for (let run = this.#turns.of(threadId); run; run = this.#turns.of(threadId)) {
      run.interrupt('user');
      await run.ended;
    }
    await this.#options.processes?.endThread(threadId);
    const { store } = this.#registry.storageOf(threadId);
    const isEphemeral = this.#registry.isEphemeral(threadId);
    store.deleteThread(threadId);
    this.#tools.forget(threadId);
    this.#options.onDeleted?.(threadId);
    if (isEphemeral) {
      this.#tracer?.sessionCompleted(threadId, 'ended');
      return () => undefined;
    }
    this.#options.traces?.deleteSession(threadId);
    return () => this.#feed.broadcast({ method: 'thread/deleted', params: { threadId } });
  }

  rollback(threadId: string, numTurns: number): Thread {
    this.#idleThread(threadId);
    this.#registry.storageOf(threadId).store.deleteLastTurns(threadId, numTurns);
    return this.read(threadId, { includeTurns: true });
  }

  updateConfig(threadId: string, config: ThreadConfig): ThreadConfig {
    const present = this.#registry.get(threadId).config;
    const merged = { ...present, ...config };
    requireSamePlace(present, merged);
    this.#registry.update(threadId, configured(merged));
    if (config.race) recordRace({ registry: this.#registry, feed: this.#feed }, threadId, config.race);
    return merged;
  }

  async compact(threadId: string): Promise<void> {
    const thread = this.#idleThread(threadId);
    await compactThread({
      thread,
      store: this.#registry.storeOf(threadId),
      provider: this.#options.provider,
      keepRecentTurns: this.#options.compaction.keepRecentTurns,
      tracer: this.#tracer,
      spending: this.#options.spending,
      publish: (kind, message) =>
        this.#feed.publish(threadId, { method: 'system/event', params: { threadId, kind, message } }),
    });
  }

  /** Creates the thread of a sub-agent, stored where its parent is. @param config replaces settings of the parent */
  startChild(parent: StoredThread, label: string | undefined, config: ThreadConfig): StoredThread {
    const now = timestamp();
    const isEphemeral = this.#registry.isEphemeral(parent.id);
    const child: StoredThread = {
      ...parent,
      ...(Object.keys(config).length > 0 && { config: { ...parent.config, ...config } }),
      id: this.#registry.newId(now, isEphemeral),
      displayName: label ?? `sub-agent of ${parent.displayName ?? parent.id}`,
      parentThreadId: parent.id,
      createdAt: now,
      lastActiveAt: now,
    };
    this.#registry.add(child, isEphemeral);
    this.#tracer?.sessionStarted(child);
    return child;
  }

  /** @throws AgentError turnInProgress */
  #idleThread(threadId: string): StoredThread {
    const thread = this.#registry.get(threadId);
    if (this.#turns.of(threadId)) throw new AgentError('turnInProgress', { threadId });
    return thread;
  }

  #contextUsage({ id, config }: StoredThread): { tokens: number; window: number } {
    const { store } = this.#registry.storageOf(id);
    const compaction = store.compaction(id);
    const recent = store.turns(id, { limit: 1 }).at(0)?.tokenUsage?.inputTokens ?? 0;
    const tokens = recent > 0 || !compaction ? recent : Math.ceil(compaction.summary.length / bytesPerToken);
    return { tokens, window: this.#options.windowOf(config?.model) };
  }
}

const configured = (config: ThreadConfig | undefined): Pick<StoredThread, 'config' | 'model'> => ({
  ...(config && { config }),
  ...(config?.model !== undefined && { model: config.model }),
});
