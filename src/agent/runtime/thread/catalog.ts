import {
  defaults,
  firstWords,
  ownAgent,
  type Thread,
  type ThreadConfig,
  type ThreadSummary,
} from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import { bytesPerToken } from '../../tokens.ts';
import type { Tool } from '../../tool.ts';
import { timestamp } from '../clock.ts';
import { askedEvent, type Listener } from '../feed.ts';
import type { RuntimeServices } from '../services.ts';
import type { DynamicTools, ListThreads, ReadThread, StartedThread, StartThread } from '../types.ts';
import { compactThread } from './compact.ts';
import { recordRace } from './fork.ts';
import { requireHere, type ThreadRegistry } from './registry.ts';
import type { ThreadTools } from './tools.ts';
import type { Turns } from './turns.ts';
import { requireSamePlace, withRealPath } from './worktree.ts';

/** Creates, lists, reads, changes and deletes threads, and subscribes clients to them. */
export class ThreadCatalog {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #tools: ThreadTools;
  readonly #turns: Turns;

  constructor(services: RuntimeServices, registry: ThreadRegistry, tools: ThreadTools, turns: Turns) {
    this.#services = services;
    this.#registry = registry;
    this.#tools = tools;
    this.#turns = turns;
  }

  start(options: StartThread): StartedThread {
    const { identity, displayName, config, dynamicTools, isEphemeral = false, isTransient = false, threadId } = options;
    const isUnlisted = isEphemeral || isTransient;
    const now = timestamp();
    const thread: StoredThread = {
      id: threadId ?? this.#registry.newId(now, isUnlisted),
      workspacePath: this.#services.workspacePath,
      status: 'active',
      ...(displayName !== undefined && { displayName }),
      ...(identity !== undefined && { identity }),
      ...configured(config && withRealPath(config, this.#services.worktreeRoots)),
      ...(isTransient && { isTransient }),
      createdAt: now,
      lastActiveAt: now,
    };
    if (dynamicTools) this.#tools.register(thread.id, dynamicTools);
    this.#registry.add(thread, isEphemeral);
    this.#services.tracer?.sessionStarted(thread);
    const announce = () => {
      if (!isUnlisted) this.#services.feed.broadcast({ method: 'thread/started', params: { thread } });
    };
    return { thread, announce };
  }

  list({ identity, channelName = identity?.channelName, includeArchived = false }: ListThreads): ThreadSummary[] {
    return this.#registry.durable.store
      .threads()
      .filter(({ parentThreadId, isTransient }) => parentThreadId === undefined && !isTransient)
      .filter((thread) => includeArchived || thread.status !== 'archived')
      .filter((thread) => channelName === undefined || thread.identity?.channelName === channelName)
      .filter((thread) => identity?.userId === undefined || thread.identity?.userId === identity.userId)
      .map((thread) => ({ ...this.#named(thread), runtime: this.#turns.runtimeOf(thread.id) }));
  }

  /** @throws AgentError threadNotFound */
  read(threadId: string, { includeTurns, turnLimit = defaults.agent.turnPage, beforeTurnId }: ReadThread): Thread {
    const thread = this.#named(this.#registry.get(threadId));
    const { store, journal } = this.#registry.storageOf(threadId);
    const running = this.#services.processes?.list(threadId) ?? [];
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

  /** A thread as clients see it, with the first words of its first request. */
  #named({ isTransient: _, ...thread }: StoredThread): Omit<StoredThread, 'isTransient'> & Pick<Thread, 'firstInput'> {
    const firstInput = firstWords(this.#registry.storeOf(thread.id).firstInput(thread.id) ?? '');
    return { ...thread, ...(firstInput !== '' && { firstInput }) };
  }

  /** Subscribes `asker` and sends it the pending approvals. @throws AgentError threadNotFound */
  resume(threadId: string, asker: Listener, dynamicTools?: DynamicTools): StartedThread {
    const { feed } = this.#services;
    const thread = this.read(threadId, { includeTurns: true });
    if (dynamicTools) this.#tools.register(threadId, dynamicTools);
    feed.subscribe(threadId, asker);
    const announce = () => {
      feed.publish(threadId, { method: 'thread/resumed', params: { thread } });
      this.#sendApprovals(threadId, asker);
    };
    return { thread, announce };
  }

  /**
   * Subscribes a listener. `replay` sends it the running turn in its present state and the pending approvals; later events continue it.
   *
   * @throws AgentError threadNotFound
   */
  subscribe(threadId: string, listener: Listener): { readonly replay: () => void } {
    this.#registry.get(threadId);
    this.#registry.storageOf(threadId).journal.flush();
    this.#services.feed.subscribe(threadId, listener);
    const turn = this.#turns.of(threadId)?.snapshot();
    const replay = () => {
      if (turn) listener({ method: 'turn/started', params: { threadId, turn } });
      this.#sendApprovals(threadId, listener);
    };
    return { replay };
  }

  unsubscribe(threadId: string, listener: Listener): void {
    this.#registry.get(threadId);
    this.#services.feed.unsubscribe(threadId, listener);
  }

  /** Adds the tools of servers that a client has brought for the thread; undefined: removes them. @throws AgentError threadNotFound */
  serve(threadId: string, tools: (() => readonly Tool[]) | undefined): void {
    if (tools) this.#registry.get(threadId);
    this.#tools.serve(threadId, tools);
  }

  /** Whether the thread is limited to built-in read-only tools. @throws AgentError threadNotFound */
  isReadOnly(threadId: string): boolean {
    return this.#registry.get(threadId).config?.readOnly === true;
  }

  /** Whether an external agent does the turns of the thread. @throws AgentError threadNotFound */
  isDelegated(threadId: string): boolean {
    const { agent } = this.#registry.get(threadId).config ?? {};
    return agent === undefined ? this.#services.delegate !== undefined : agent !== ownAgent;
  }

  #sendApprovals(threadId: string, listener: Listener): void {
    for (const request of this.#turns.approvals.pending(threadId)) listener(askedEvent(request));
  }

  rename(threadId: string, displayName: string): () => void {
    this.#registry.update(threadId, { displayName });
    return () => this.#services.feed.broadcast({ method: 'thread/renamed', params: { threadId, displayName } });
  }

  archive(threadId: string, isArchived: boolean): () => void {
    const status = isArchived ? 'archived' : 'active';
    if (isArchived) this.#idleThread(threadId);
    if (this.#registry.get(threadId).status === status) return () => undefined;
    this.#registry.update(threadId, { status });
    if (isArchived) {
      void this.#services.processes?.endThread(threadId);
      this.#services.tracer?.sessionCompleted(threadId, 'archived');
    }
    return () => this.#services.feed.broadcast({ method: 'thread/statusChanged', params: { threadId, status } });
  }

  /** Ends a background process. @throws AgentError threadNotFound, processNotFound */
  async stopProcess(threadId: string, processId: string): Promise<void> {
    this.#registry.get(threadId);
    if (!(await this.#services.processes?.stop(threadId, processId))) {
      throw new AgentError('processNotFound', { threadId, processId });
    }
  }

  /** Interrupts the running turn first. Deletes the traces, too. @throws AgentError threadNotFound */
  async delete(threadId: string): Promise<() => void> {
    this.#registry.get(threadId);
    // A turn that completes before the interrupt starts the next input of the queue.
    for (let run = this.#turns.of(threadId); run; run = this.#turns.of(threadId)) {
      run.interrupt('user');
      await run.ended;
    }
    await this.#services.processes?.endThread(threadId);
    const isUnlisted = this.#registry.isUnlisted(threadId);
    if (isUnlisted) for (const id of this.#registry.subagentsOf(threadId)) await this.delete(id);
    this.#registry.delete(threadId);
    this.#tools.forget(threadId);
    this.#services.onDeleted?.(threadId);
    if (isUnlisted) {
      this.#services.tracer?.sessionCompleted(threadId, 'ended');
      return () => undefined;
    }
    this.#services.traces?.deleteSession(threadId);
    return () => this.#services.feed.broadcast({ method: 'thread/deleted', params: { threadId } });
  }

  /** Deletes the transient threads of an earlier process, except those with a turn that continues. */
  async sweepTransient(): Promise<void> {
    const left = this.#registry.durable.store.threads().filter(({ isTransient }) => isTransient);
    const parents = new Map(left.map(({ id, parentThreadId }) => [id, parentThreadId]));
    const isRunning = (id: string | undefined): boolean =>
      id !== undefined && (this.#turns.of(id) !== undefined || isRunning(parents.get(id)));
    for (const { id } of left.filter((thread) => !isRunning(thread.id))) {
      // Deleting the parents' thread deletes the threads of sub-agents.
      if (this.#registry.durable.store.thread(id)) await this.delete(id);
    }
  }

  /** @throws AgentError turnInProgress */
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
    if (config.race) recordRace(this.#services.feed, this.#registry, threadId, config.race);
    return merged;
  }

  async compact(threadId: string): Promise<void> {
    const thread = this.#idleThread(threadId);
    await compactThread(this.#services, thread, this.#registry.storeOf(threadId));
  }

  /** @throws AgentError turnInProgress */
  #idleThread(threadId: string): StoredThread {
    const thread = this.#registry.get(threadId);
    requireHere(thread);
    if (this.#turns.of(threadId)) throw new AgentError('turnInProgress', { threadId });
    return thread;
  }

  /** Window of a model in tokens, of the default one without a name. A provider that was not asked yet has no facts. */
  #windowOf(model?: string): number {
    const { settings, loadedProvider } = this.#services;
    const facts = loadedProvider()?.facts?.(model);
    return settings.compaction.contextWindow || (facts?.contextWindow ?? defaults.upstream.contextWindow);
  }

  #contextUsage({ id, config }: StoredThread): { tokens: number; window: number } {
    const { store } = this.#registry.storageOf(id);
    const compaction = store.compaction(id);
    const recent = store.turns(id, { limit: 1 }).at(0)?.tokenUsage?.inputTokens ?? 0;
    const tokens = recent > 0 || !compaction ? recent : Math.ceil(compaction.summary.length / bytesPerToken);
    return { tokens, window: this.#windowOf(config?.model) };
  }
}

const configured = (config: ThreadConfig | undefined): Pick<StoredThread, 'config' | 'model'> => ({
  ...(config && { config }),
  ...(config?.model !== undefined && { model: config.model }),
});
