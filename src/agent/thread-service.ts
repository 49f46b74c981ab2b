import { randomInt } from 'node:crypto';
import type { AnyActorRef } from 'xstate';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  defaults,
  type InputPart,
  type ModelListResult,
  type QueuedInput,
  type Thread,
  type ThreadConfig,
  type ThreadSummary,
  type Turn,
} from '../protocol/index.ts';
import { compact, conversationOf } from './compaction.ts';
import { toolsOf } from './dynamic-tools.ts';
import { AgentError } from './errors.ts';
import { Feed, type Listener } from './feed.ts';
import { estimateTokens } from './history.ts';
import { DurableJournal, VolatileJournal } from './journal.ts';
import { ModelError, type ModelProvider } from './model.ts';
import { markCrashed } from './recovery.ts';
import type { DynamicTools, ListThreads, ReadThread, Runtime, StartThread, TurnOptions } from './runtime.ts';
import { MemoryStore } from './store/index.ts';
import { type Compaction, StorageError, type StoredThread, type ThreadStore, type TraceStore } from './thread-store.ts';
import type { Tool } from './tool.ts';
import { Tracer } from './tracer.ts';
import type { RuntimeSettings } from './turn-host.ts';
import { type Keeping, Turns } from './turns.ts';

export interface ThreadServiceOptions {
  /** Canonical. */
  readonly workspacePath: string;
  readonly store: ThreadStore;
  /** Absent: nothing is traced. */
  readonly traces?: TraceStore | undefined;
  /** See `providerSource`. */
  readonly provider: () => Promise<ModelProvider>;
  /** Everything that can be called, MCP tools included, by the time of the call. */
  readonly tools: () => readonly Tool[];
  /** Names that the configuration enables; undefined: all. MCP tools are not restricted by it. */
  readonly enabledTools?: readonly string[] | undefined;
  readonly settings: RuntimeSettings;
  /** Takes secrets out of a text. */
  readonly clean?: (text: string) => string;
  /** Logs what is nobody's fault but ours and returns its id. */
  readonly onBug: (error: unknown) => string;
  /** Sees the machine of every turn before it starts. */
  readonly observe?: (actor: AnyActorRef, threadId: string, turnId: string) => void;
  /** Called after the last event of every turn of a thread that is kept. */
  readonly onTurnEnd?: (thread: StoredThread, turn: Turn) => void;
}

const modelListMs = 15_000;

/** Threads of one workspace and the turns that run in them: at most one per thread. See `Runtime`. */
export class ThreadService implements Runtime {
  readonly feed: Feed;
  readonly #options: ThreadServiceOptions;
  readonly #turns: Turns;
  readonly #tracer: Tracer | undefined;
  readonly #durable: Keeping;
  readonly #ephemeral: Keeping;
  readonly #dynamicTools = new Map<string, DynamicTools>();
  readonly #queueAskers = new Map<string, Listener>();
  #isClosing = false;

  constructor(options: ThreadServiceOptions) {
    const { workspacePath, store, traces, provider, settings, onBug, observe, clean = (text) => text } = options;
    this.#options = options;
    this.feed = new Feed(onBug);
    this.#tracer = traces && new Tracer(traces, clean);
    const memory = new MemoryStore();
    this.#durable = { store, journal: new DurableJournal(store, onBug) };
    this.#ephemeral = { store: memory, journal: new VolatileJournal(onBug) };
    this.#turns = new Turns({
      workspacePath,
      settings,
      feed: this.feed,
      tracer: this.#tracer,
      provider,
      keepingOf: (threadId) => this.#keepingOf(threadId),
      mainStore: store,
      toolsOf: (thread, depth) => this.#toolsOf(thread, depth),
      startChild: (parent, label) => this.#startChild(parent, label),
      clean,
      onBug,
      observe,
      onEnd: (thread, turn) => this.#ended(thread, turn),
    });
    markCrashed(store, this.#tracer);
  }

  get activeTurns(): number {
    return this.#turns.count;
  }

  async describe() {
    const { name: provider, model } = await this.#options.provider();
    return { provider, model, tools: this.#serverTools().map(({ name }) => name) };
  }

  start({ identity, displayName, config, dynamicTools, isEphemeral = false, threadId }: StartThread) {
    const now = new Date().toISOString();
    const thread: StoredThread = {
      id: threadId ?? this.#newThreadId(now),
      workspacePath: this.#options.workspacePath,
      status: 'active',
      ...(displayName !== undefined && { displayName }),
      ...(identity !== undefined && { identity }),
      ...configured(config),
      createdAt: now,
      lastActiveAt: now,
    };
    if (dynamicTools) this.#bring(thread.id, dynamicTools);
    this.#put(thread, isEphemeral);
    this.#tracer?.sessionStarted(thread);
    const announce = () => {
      if (!isEphemeral) this.feed.broadcast({ method: 'thread/started', params: { thread } });
    };
    return { thread, announce };
  }

  list({ identity, channelName = identity?.channelName, includeArchived = false }: ListThreads): ThreadSummary[] {
    return this.#durable.store
      .threads()
      .filter(({ parentThreadId }) => parentThreadId === undefined)
      .filter((thread) => includeArchived || thread.status !== 'archived')
      .filter((thread) => channelName === undefined || thread.identity?.channelName === channelName)
      .filter((thread) => identity?.userId === undefined || thread.identity?.userId === identity.userId)
      .map((thread) => ({ ...thread, runtime: this.#turns.runtimeOf(thread.id) }));
  }

  read(threadId: string, { includeTurns, turnLimit = defaults.agent.turnPage, beforeTurnId }: ReadThread): Thread {
    const thread = this.#thread(threadId);
    const { store, journal } = this.#keepingOf(threadId);
    const queuedInputs = [...store.queue(threadId)];
    if (!includeTurns) return { ...thread, queuedInputs };
    journal.flush();
    const run = this.#turns.of(threadId)?.snapshot();
    const turns = store.turns(threadId, { limit: turnLimit + 1, before: beforeTurnId });
    const page = turns.slice(-turnLimit).map((turn) => (turn.id === run?.id ? run : turn));
    return {
      ...thread,
      queuedInputs,
      turns: page,
      hasOlderTurns: turns.length > turnLimit,
      contextUsage: this.#contextUsage(threadId),
    };
  }

  resume(threadId: string, asker: Listener, dynamicTools?: DynamicTools) {
    const thread = this.read(threadId, { includeTurns: true });
    if (dynamicTools) this.#bring(threadId, dynamicTools);
    this.feed.subscribe(threadId, asker);
    const announce = () => {
      this.feed.publish(threadId, { method: 'thread/resumed', params: { thread } });
      this.#tellApprovals(threadId, asker);
    };
    return { thread, announce };
  }

  subscribe(threadId: string, listener: Listener) {
    this.#thread(threadId);
    this.#keepingOf(threadId).journal.flush();
    this.feed.subscribe(threadId, listener);
    const turn = this.#turns.of(threadId)?.snapshot();
    const replay = () => {
      if (turn) listener({ method: 'turn/started', params: { threadId, turn } });
      this.#tellApprovals(threadId, listener);
    };
    return { replay };
  }

  unsubscribe(threadId: string, listener: Listener): void {
    this.#thread(threadId);
    this.feed.unsubscribe(threadId, listener);
  }

  rename(threadId: string, displayName: string): () => void {
    this.#update(threadId, { displayName });
    return () => this.feed.broadcast({ method: 'thread/renamed', params: { threadId, displayName } });
  }

  archive(threadId: string, isArchived: boolean): () => void {
    const status = isArchived ? 'archived' : 'active';
    if (isArchived) this.#idleThread(threadId);
    if (this.#thread(threadId).status === status) return () => undefined;
    this.#update(threadId, { status });
    if (isArchived) this.#tracer?.sessionCompleted(threadId, 'archived');
    return () => this.feed.broadcast({ method: 'thread/statusChanged', params: { threadId, status } });
  }

  async delete(threadId: string): Promise<() => void> {
    this.#thread(threadId);
    const run = this.#turns.of(threadId);
    if (run) {
      const ended = Promise.withResolvers<void>();
      const listen: Listener = ({ method }) => {
        if (method === 'turn/cancelled' || method === 'turn/completed' || method === 'turn/failed') ended.resolve();
      };
      this.feed.subscribe(threadId, listen);
      run.interrupt('user');
      await ended.promise;
      this.feed.unsubscribe(threadId, listen);
    }
    const { store } = this.#keepingOf(threadId);
    const isEphemeral = store === this.#ephemeral.store;
    store.deleteThread(threadId);
    this.#dynamicTools.delete(threadId);
    if (isEphemeral) {
      this.#tracer?.sessionCompleted(threadId, 'ended');
      return () => undefined;
    }
    this.#options.traces?.deleteSession(threadId);
    return () => this.feed.broadcast({ method: 'thread/deleted', params: { threadId } });
  }

  rollback(threadId: string, numTurns: number): Thread {
    this.#idleThread(threadId);
    this.#keepingOf(threadId).store.deleteLastTurns(threadId, numTurns);
    return this.read(threadId, { includeTurns: true });
  }

  updateConfig(threadId: string, config: ThreadConfig): ThreadConfig {
    const merged = { ...this.#thread(threadId).config, ...config };
    this.#update(threadId, configured(merged));
    return merged;
  }

  async compact(threadId: string): Promise<void> {
    const thread = this.#idleThread(threadId);
    const { store } = this.#keepingOf(threadId);
    const earlier = store.compaction(threadId);
    const turns = store.turnsSince(threadId, earlier?.throughTurnId);
    const before = estimateTokens(conversationOf(earlier, turns));
    const tell = (kind: string, message: string) =>
      this.feed.publish(threadId, { method: 'system/event', params: { threadId, kind, message } });
    let done: Compaction | undefined;
    try {
      done = await compact({
        provider: await this.#options.provider(),
        model: thread.config?.model,
        turns,
        earlier,
        keep: this.#options.settings.compaction.keepRecentTurns,
        signal: AbortSignal.timeout(defaults.agent.compactionMs),
      });
    } catch (error) {
      return tell('compactFailed', modelFailure(error, defaults.agent.compactionMs).message);
    }
    this.#thread(threadId);
    // Meanwhile the turns may have been taken back.
    const stands = done && store.turn(threadId, done.throughTurnId) !== undefined;
    if (!done || !stands) return tell('compactSkipped', 'There is nothing old enough to be summarised.');
    store.putCompaction(threadId, done);
    const after = estimateTokens(conversationOf(done, store.turnsSince(threadId, done.throughTurnId)));
    this.#tracer?.contextCompacted(threadId, undefined, before, after);
    tell('compacted', `Older turns were summarised: about ${before} tokens became ${after}.`);
  }

  startTurn(threadId: string, input: readonly InputPart[], asker: Listener | undefined, options?: TurnOptions) {
    const thread = this.#thread(threadId);
    if (this.#isClosing) throw new AgentError('overloaded', { threadId }, 'the server is shutting down');
    if (thread.status !== 'active') throw new AgentError('threadNotActive', { threadId, status: thread.status });
    const run = this.#turns.start(thread, input, asker, options);
    return { turn: run.snapshot(), begin: () => run.begin() };
  }

  interrupt(threadId: string, turnId: string): () => void {
    this.#thread(threadId);
    const run = this.#turns.of(threadId);
    if (run?.turnId === turnId) return () => run.interrupt('user');
    throw this.#noSuchTurn(threadId, turnId);
  }

  enqueue(threadId: string, input: readonly InputPart[], sender?: string, asker?: Listener) {
    const now = new Date().toISOString();
    const queuedInput: QueuedInput = {
      id: `queued_${Date.now()}_${letters()}`,
      input: [...input],
      ...(sender !== undefined && { sender }),
      createdAt: now,
    };
    if (!this.#turns.of(threadId)) {
      const { begin } = this.startTurn(threadId, input, asker, { sender });
      return { queuedInput, queuedInputs: [...this.#queue(threadId)], begin };
    }
    const { maxSessionQueueSize } = this.#options.settings;
    if (this.#queue(threadId).length >= maxSessionQueueSize) {
      throw new AgentError('overloaded', { threadId, limit: maxSessionQueueSize }, 'the queue of the thread is full');
    }
    this.#keepingOf(threadId).store.putQueued(threadId, queuedInput);
    if (asker) this.#queueAskers.set(queuedInput.id, asker);
    const queuedInputs = [...this.#queue(threadId)];
    return { queuedInput, queuedInputs, begin: () => this.#tellQueue(threadId) };
  }

  dequeue(threadId: string, queuedInputId: string): readonly QueuedInput[] {
    this.#takeQueued(threadId, queuedInputId);
    this.#tellQueue(threadId);
    return this.#queue(threadId);
  }

  steer(
    threadId: string,
    turnId: string,
    {
      queuedInputId,
      input,
    }: { readonly queuedInputId?: string | undefined; readonly input?: readonly InputPart[] | undefined },
  ) {
    this.#thread(threadId);
    const run = this.#turns.of(threadId);
    if (run?.turnId !== turnId) throw this.#noSuchTurn(threadId, turnId);
    const queued = queuedInputId === undefined ? [] : this.#queued(threadId, queuedInputId).input;
    if (!run.steer([...queued, ...(input ?? [])])) throw new AgentError('turnNotRunning', { threadId, turnId });
    if (queuedInputId !== undefined) {
      this.#takeQueued(threadId, queuedInputId);
      this.#tellQueue(threadId);
    }
    return { turnId, queuedInputs: this.#queue(threadId) };
  }

  approvals(threadId?: string): readonly ApprovalRequest[] {
    if (threadId !== undefined) this.#thread(threadId);
    return this.#turns.approvals(threadId);
  }

  respond(requestId: string, decision: ApprovalDecision): void {
    if (this.#turns.respond(requestId, decision)) return;
    throw new AgentError(this.#turns.hasExpired(requestId) ? 'approvalTimeout' : 'approvalNotFound', { requestId });
  }

  /** Never throws for what the provider does: the protocol has a place for it in the result. */
  async models(): Promise<ModelListResult> {
    try {
      const provider = await this.#options.provider();
      return { success: true, models: [...(await provider.listModels(AbortSignal.timeout(modelListMs)))] };
    } catch (error) {
      const { code, message } = modelFailure(error, modelListMs);
      return { success: false, errorCode: code, errorMessage: message };
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#turns.interruptAll();
    await this.#turns.idle();
    this.#durable.journal.flush();
  }

  #ended(thread: StoredThread, turn: Turn): void {
    const { store } = this.#keepingOf(thread.id);
    const current = store.thread(thread.id);
    if (current) store.putThread({ ...current, lastActiveAt: turn.completedAt ?? current.lastActiveAt });
    if (store !== this.#durable.store) return;
    this.#options.onTurnEnd?.(thread, turn);
    if (turn.status === 'completed' && !this.#isClosing) this.#startNext(thread.id);
  }

  /** Only a turn that completed makes room: after a failure somebody should look first. */
  #startNext(threadId: string): void {
    const [next] = this.#queue(threadId);
    if (!next) return;
    const asker = this.#queueAskers.get(next.id);
    this.#takeQueued(threadId, next.id);
    this.#tellQueue(threadId);
    this.startTurn(threadId, next.input, asker, { sender: next.sender }).begin();
  }

  #queue(threadId: string): readonly QueuedInput[] {
    return this.#keepingOf(threadId).store.queue(threadId);
  }

  /** @throws AgentError threadNotFound, queuedInputNotFound */
  #queued(threadId: string, queuedInputId: string): QueuedInput {
    this.#thread(threadId);
    const queued = this.#queue(threadId).find(({ id }) => id === queuedInputId);
    if (!queued) throw new AgentError('queuedInputNotFound', { threadId, queuedInputId });
    return queued;
  }

  #takeQueued(threadId: string, queuedInputId: string): void {
    this.#queued(threadId, queuedInputId);
    this.#keepingOf(threadId).store.deleteQueued(threadId, queuedInputId);
    this.#queueAskers.delete(queuedInputId);
  }

  #tellQueue(threadId: string): void {
    const params = { threadId, queuedInputs: [...this.#queue(threadId)] };
    this.feed.publish(threadId, { method: 'thread/queue/updated', params });
  }

  #tellApprovals(threadId: string, listener: Listener): void {
    for (const params of this.#turns.approvals(threadId)) listener({ method: 'item/approval/request', params });
  }

  #serverTools(): readonly Tool[] {
    const { tools, enabledTools } = this.#options;
    const enabled = enabledTools && new Set(enabledTools);
    return tools().filter(({ name, source }) => source !== 'builtin' || !enabled || enabled.has(name));
  }

  #toolsOf({ id, config }: StoredThread, depth: number): readonly Tool[] {
    const { maxDepth } = this.#options.settings.subAgent;
    const wanted = config?.enabledTools && new Set(config.enabledTools.map((name) => name.toLowerCase()));
    const server = this.#serverTools()
      .filter(({ name }) => !wanted || wanted.has(name.toLowerCase()))
      .filter(({ name, source }) => name !== 'SpawnSubagent' || source !== 'builtin' || depth < maxDepth);
    const brought = this.#dynamicTools.get(id);
    return brought ? [...server, ...toolsOf(brought, new Set(server.map(({ name }) => name)))] : server;
  }

  /** @throws AgentError toolConflict */
  #bring(threadId: string, dynamicTools: DynamicTools): void {
    toolsOf(dynamicTools, new Set(this.#serverTools().map(({ name }) => name)));
    this.#dynamicTools.set(threadId, dynamicTools);
  }

  #startChild(parent: StoredThread, label: string | undefined): StoredThread {
    const now = new Date().toISOString();
    const child: StoredThread = {
      ...parent,
      id: this.#newThreadId(now),
      displayName: label ?? `sub-agent of ${parent.displayName ?? parent.id}`,
      parentThreadId: parent.id,
      createdAt: now,
      lastActiveAt: now,
    };
    this.#put(child, this.#keepingOf(parent.id) === this.#ephemeral);
    this.#tracer?.sessionStarted(child);
    return child;
  }

  #put(thread: StoredThread, isEphemeral: boolean): void {
    try {
      (isEphemeral ? this.#ephemeral : this.#durable).store.putThread(thread);
    } catch (error) {
      if (error instanceof StorageError) throw new AgentError('storageFailed', { threadId: thread.id }, error.message);
      throw error;
    }
  }

  #update(threadId: string, change: Partial<StoredThread>): void {
    const { store } = this.#keepingOf(threadId);
    store.putThread({ ...this.#thread(threadId), ...change });
  }

  #keepingOf(threadId: string): Keeping {
    return this.#ephemeral.store.thread(threadId) ? this.#ephemeral : this.#durable;
  }

  #thread(threadId: string): StoredThread {
    const thread = this.#ephemeral.store.thread(threadId) ?? this.#durable.store.thread(threadId);
    if (!thread) throw new AgentError('threadNotFound', { threadId });
    return thread;
  }

  /** @throws AgentError turnInProgress */
  #idleThread(threadId: string): StoredThread {
    const thread = this.#thread(threadId);
    if (this.#turns.of(threadId)) throw new AgentError('turnInProgress', { threadId });
    return thread;
  }

  #noSuchTurn(threadId: string, turnId: string): AgentError {
    const isKnown = this.#keepingOf(threadId).store.turn(threadId, turnId) !== undefined;
    return new AgentError(isKnown ? 'turnNotRunning' : 'turnNotFound', { threadId, turnId });
  }

  #contextUsage(threadId: string): { tokens: number; window: number } {
    const { store } = this.#keepingOf(threadId);
    const compaction = store.compaction(threadId);
    const recent = store.turns(threadId, { limit: 1 }).at(0)?.tokenUsage?.inputTokens ?? 0;
    const tokens = recent > 0 || !compaction ? recent : Math.ceil(compaction.summary.length / 4);
    return { tokens, window: this.#options.settings.compaction.contextWindow };
  }

  #newThreadId(now: string): string {
    for (;;) {
      const id = `thread_${now.slice(0, 10).replaceAll('-', '')}_${letters()}`;
      if (!this.#durable.store.thread(id) && !this.#ephemeral.store.thread(id)) return id;
    }
  }
}

/** What a request to the model that was given `ms` milliseconds failed of. What is no fault of the model's is thrown on. */
function modelFailure(error: unknown, ms: number): { readonly code: string; readonly message: string } {
  if (error instanceof ModelError) return error;
  if ((error as Error).name !== 'TimeoutError') throw error;
  return { code: 'upstreamUnreachable', message: `The upstream did not answer within ${ms} ms.` };
}

const letters = (): string => Array.from({ length: 6 }, () => randomInt(36).toString(36)).join('');

const configured = (config: ThreadConfig | undefined): Pick<StoredThread, 'config' | 'model'> => ({
  ...(config && { config }),
  ...(config?.model !== undefined && { model: config.model }),
});
