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
} from '../../protocol/index.ts';
import { AgentError } from '../errors.ts';
import { type ModelProvider, modelFailure } from '../model.ts';
import type { StoredThread, ThreadStore, TraceStore } from '../thread-store.ts';
import type { Tool } from '../tool.ts';
import type { ReadImage } from '../tools/index.ts';
import { timestamp } from './clock.ts';
import { compactThread } from './compact-thread.ts';
import { Feed, type Listener } from './feed.ts';
import { InputQueue } from './input-queue.ts';
import { endCrashedTraces, markCrashed } from './recovery.ts';
import { ThreadRegistry } from './thread-registry.ts';
import { ThreadTools } from './thread-tools.ts';
import { Tracer } from './tracer.ts';
import type { RuntimeSettings } from './turn-host.ts';
import { Turns } from './turns.ts';
import type { DynamicTools, ListThreads, ReadThread, RunningTurn, Runtime, StartThread, TurnOptions } from './types.ts';
import { findWorktree, requireSamePlace } from './worktree.ts';

export interface ThreadServiceOptions {
  /** Canonical. */
  readonly workspacePath: string;
  /** Below them a thread may work somewhere else than in the workspace. Absolute; they need not exist. Default: none. */
  readonly worktreeRoots?: readonly string[];
  readonly store: ThreadStore;
  /** Absent: nothing is traced. */
  readonly traces?: TraceStore | undefined;
  /** False: nothing new is traced, what there is stays until its thread is deleted. Default true. */
  readonly isTracing?: boolean;
  /** See `providerSource`. */
  readonly provider: () => Promise<ModelProvider>;
  /** Everything that can be called, MCP tools included, by the time of the call. */
  readonly tools: () => readonly Tool[];
  /** Names that the configuration enables; undefined: all. MCP tools are not restricted by it. */
  readonly enabledTools?: readonly string[] | undefined;
  readonly settings: RuntimeSettings;
  /** Reads images that messages name by their paths. Default: they are only mentioned. */
  readonly readImage?: ReadImage | undefined;
  /** Takes secrets out of a text. */
  readonly clean?: (text: string) => string;
  /** Logs a bug of ours and returns its id. */
  readonly onBug: (error: unknown) => string;
  /** Sees the machine of every turn before it starts. */
  readonly observe?: (actor: AnyActorRef, threadId: string, turnId: string) => void;
  /** Called after the last event of every turn of a stored thread. */
  readonly onTurnEnd?: (thread: StoredThread, turn: Turn) => void;
}

const modelListMs = 15_000;

/** Threads of one workspace and the turns that run in them: at most one per thread. See `Runtime`. */
export class ThreadService implements Runtime {
  readonly feed: Feed;
  readonly #options: ThreadServiceOptions;
  readonly #turns: Turns;
  readonly #tracer: Tracer | undefined;
  readonly #registry: ThreadRegistry;
  readonly #tools: ThreadTools;
  readonly #queue: InputQueue;
  #isClosing = false;

  constructor(options: ThreadServiceOptions) {
    const { workspacePath, store, traces, isTracing = true, provider, settings, onBug, observe } = options;
    const { clean = (text) => text, readImage = async () => undefined } = options;
    const tracer = traces && new Tracer(traces, clean);
    this.#options = options;
    this.feed = new Feed(onBug);
    this.#tracer = isTracing ? tracer : undefined;
    this.#registry = new ThreadRegistry(store, onBug);
    this.#queue = new InputQueue(this.#registry, this.feed, settings.maxSessionQueueSize);
    this.#tools = new ThreadTools({
      tools: options.tools,
      enabled: options.enabledTools,
      maxDepth: settings.subAgent.maxDepth,
    });
    this.#turns = new Turns({
      workspacePath,
      settings,
      feed: this.feed,
      tracer: this.#tracer,
      provider,
      storageOf: (threadId) => this.#registry.storageOf(threadId),
      mainStore: store,
      toolsOf: (thread, depth) => this.#tools.of(thread, depth),
      readImage,
      startChild: (parent, label) => this.#startChild(parent, label),
      clean,
      onBug,
      observe,
      touch: (threadId, at) => this.#touch(threadId, at),
      onEnd: (thread, turn) => this.#ended(thread, turn),
    });
    markCrashed(store);
    if (tracer && traces) endCrashedTraces(traces, store, tracer);
  }

  get activeTurns(): number {
    return this.#turns.count;
  }

  async describe() {
    const { name: provider, model } = await this.#options.provider();
    return { provider, model, tools: this.#tools.all().map(({ name }) => name) };
  }

  start({ identity, displayName, config, dynamicTools, isEphemeral = false, threadId }: StartThread) {
    const now = timestamp();
    const thread: StoredThread = {
      id: threadId ?? this.#registry.newId(now, isEphemeral),
      workspacePath: this.#options.workspacePath,
      status: 'active',
      ...(displayName !== undefined && { displayName }),
      ...(identity !== undefined && { identity }),
      ...configured(config && this.#placed(config)),
      createdAt: now,
      lastActiveAt: now,
    };
    if (dynamicTools) this.#tools.bring(thread.id, dynamicTools);
    this.#registry.add(thread, isEphemeral);
    this.#tracer?.sessionStarted(thread);
    const announce = () => {
      if (!isEphemeral) this.feed.broadcast({ method: 'thread/started', params: { thread } });
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
    const queuedInputs = [...store.queue(threadId)];
    if (!includeTurns) return { ...thread, queuedInputs };
    journal.flush();
    const turns = store.turns(threadId, { limit: turnLimit + 1, before: beforeTurnId });
    const page = turns.slice(-turnLimit).map((turn) => this.#turns.asItIs(turn));
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
    if (dynamicTools) this.#tools.bring(threadId, dynamicTools);
    this.feed.subscribe(threadId, asker);
    const announce = () => {
      this.feed.publish(threadId, { method: 'thread/resumed', params: { thread } });
      this.#tellApprovals(threadId, asker);
    };
    return { thread, announce };
  }

  subscribe(threadId: string, listener: Listener) {
    this.#registry.get(threadId);
    this.#registry.storageOf(threadId).journal.flush();
    this.feed.subscribe(threadId, listener);
    const turn = this.#turns.of(threadId)?.snapshot();
    const replay = () => {
      if (turn) listener({ method: 'turn/started', params: { threadId, turn } });
      this.#tellApprovals(threadId, listener);
    };
    return { replay };
  }

  unsubscribe(threadId: string, listener: Listener): void {
    this.#registry.get(threadId);
    this.feed.unsubscribe(threadId, listener);
  }

  rename(threadId: string, displayName: string): () => void {
    this.#registry.update(threadId, { displayName });
    return () => this.feed.broadcast({ method: 'thread/renamed', params: { threadId, displayName } });
  }

  archive(threadId: string, isArchived: boolean): () => void {
    const status = isArchived ? 'archived' : 'active';
    if (isArchived) this.#idleThread(threadId);
    if (this.#registry.get(threadId).status === status) return () => undefined;
    this.#registry.update(threadId, { status });
    if (isArchived) this.#tracer?.sessionCompleted(threadId, 'archived');
    return () => this.feed.broadcast({ method: 'thread/statusChanged', params: { threadId, status } });
  }

  async delete(threadId: string): Promise<() => void> {
    this.#registry.get(threadId);
    // A turn that completes before the interrupt starts the next input of the queue.
    for (let run = this.#turns.of(threadId); run; run = this.#turns.of(threadId)) {
      run.interrupt('user');
      await run.ended;
    }
    const { store } = this.#registry.storageOf(threadId);
    const isEphemeral = this.#registry.isEphemeral(threadId);
    store.deleteThread(threadId);
    this.#tools.forget(threadId);
    if (isEphemeral) {
      this.#tracer?.sessionCompleted(threadId, 'ended');
      return () => undefined;
    }
    this.#options.traces?.deleteSession(threadId);
    return () => this.feed.broadcast({ method: 'thread/deleted', params: { threadId } });
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
    return merged;
  }

  async compact(threadId: string): Promise<void> {
    const thread = this.#idleThread(threadId);
    await compactThread({
      thread,
      store: this.#registry.storeOf(threadId),
      provider: this.#options.provider,
      keep: this.#options.settings.compaction.keepRecentTurns,
      tracer: this.#tracer,
      tell: (kind, message) =>
        this.feed.publish(threadId, { method: 'system/event', params: { threadId, kind, message } }),
    });
  }

  startTurn(threadId: string, input: readonly InputPart[], asker: Listener | undefined, options?: TurnOptions) {
    const thread = this.#registry.get(threadId);
    if (this.#isClosing) throw new AgentError('overloaded', { threadId }, 'the server is shutting down');
    if (thread.status !== 'active') throw new AgentError('threadNotActive', { threadId, status: thread.status });
    // It may have gone, or become a link, since the last turn.
    if (thread.config) requireSamePlace(thread.config, this.#placed(thread.config));
    const run = this.#turns.start(thread, input, asker, options);
    return { turn: run.snapshot(), begin: () => run.begin(), ended: run.ended };
  }

  runningTurn(threadId: string): RunningTurn | undefined {
    return this.#turns.of(threadId);
  }

  interrupt(threadId: string, turnId: string): () => void {
    this.#registry.get(threadId);
    const run = this.#turns.of(threadId);
    if (run?.turnId === turnId) return () => run.interrupt('user');
    throw this.#noSuchTurn(threadId, turnId);
  }

  enqueue(threadId: string, input: readonly InputPart[], sender?: string, asker?: Listener) {
    const queuedInput = this.#queue.make(input, sender);
    if (!this.#turns.of(threadId)) {
      const { begin } = this.startTurn(threadId, input, asker, { sender });
      return { queuedInput, queuedInputs: this.#queue.list(threadId), begin };
    }
    this.#queue.add(threadId, queuedInput, asker);
    return { queuedInput, queuedInputs: this.#queue.list(threadId), begin: () => this.#queue.tell(threadId) };
  }

  dequeue(threadId: string, queuedInputId: string): readonly QueuedInput[] {
    this.#queue.take(threadId, queuedInputId);
    this.#queue.tell(threadId);
    return this.#queue.list(threadId);
  }

  steer(
    threadId: string,
    turnId: string,
    {
      queuedInputId,
      input,
    }: { readonly queuedInputId?: string | undefined; readonly input?: readonly InputPart[] | undefined },
  ) {
    this.#registry.get(threadId);
    const run = this.#turns.of(threadId);
    if (run?.turnId !== turnId) throw this.#noSuchTurn(threadId, turnId);
    const queued = queuedInputId === undefined ? [] : this.#queue.peek(threadId, queuedInputId).input;
    if (!run.steer([...queued, ...(input ?? [])])) throw new AgentError('turnNotRunning', { threadId, turnId });
    if (queuedInputId !== undefined) {
      this.#queue.take(threadId, queuedInputId);
      this.#queue.tell(threadId);
    }
    return { turnId, queuedInputs: this.#queue.list(threadId) };
  }

  approvals(threadId?: string): readonly ApprovalRequest[] {
    if (threadId !== undefined) this.#registry.get(threadId);
    return this.#turns.approvals(threadId);
  }

  respond(requestId: string, decision: ApprovalDecision, by: 'user' | 'policy' = 'user'): void {
    if (this.#turns.respond(requestId, decision, by)) return;
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
    this.#registry.durable.journal.flush();
    this.#turns.keepEnds();
  }

  /** @throws AgentError workspaceOverrideRefused */
  #placed(config: ThreadConfig): ThreadConfig {
    const { workspaceOverride } = config;
    if (workspaceOverride === undefined) return config;
    return { ...config, workspaceOverride: findWorktree(workspaceOverride, this.#options.worktreeRoots ?? []) };
  }

  #touch(threadId: string, lastActiveAt: string): void {
    const store = this.#registry.storeOf(threadId);
    const thread = store.thread(threadId);
    if (thread) store.putThread({ ...thread, lastActiveAt });
  }

  #ended(thread: StoredThread, turn: Turn): void {
    if (this.#registry.isEphemeral(thread.id)) return;
    this.#options.onTurnEnd?.(thread, turn);
    if (turn.status === 'completed' && !this.#isClosing) this.#startNext(thread.id);
  }

  /** Only a completed turn starts the next input: after a failure a user should decide. */
  #startNext(threadId: string): void {
    const [next] = this.#queue.list(threadId);
    if (!next) return;
    try {
      const { begin } = this.startTurn(threadId, next.input, this.#queue.askerOf(next.id), { sender: next.sender });
      // Not before it is certain that it runs: what waits is lost by nothing.
      this.#queue.take(threadId, next.id);
      this.#queue.tell(threadId);
      begin();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const message = `What waits in the queue could not be begun: ${error.detail ?? error.message}`;
      this.feed.publish(threadId, { method: 'system/event', params: { threadId, kind: 'queueBlocked', message } });
    }
  }

  #tellApprovals(threadId: string, listener: Listener): void {
    for (const params of this.#turns.approvals(threadId)) listener({ method: 'item/approval/request', params });
  }

  #startChild(parent: StoredThread, label: string | undefined): StoredThread {
    const now = timestamp();
    const isEphemeral = this.#registry.isEphemeral(parent.id);
    const child: StoredThread = {
      ...parent,
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

  #noSuchTurn(threadId: string, turnId: string): AgentError {
    const isKnown = this.#registry.storageOf(threadId).store.turn(threadId, turnId) !== undefined;
    return new AgentError(isKnown ? 'turnNotRunning' : 'turnNotFound', { threadId, turnId });
  }

  #contextUsage(threadId: string): { tokens: number; window: number } {
    const { store } = this.#registry.storageOf(threadId);
    const compaction = store.compaction(threadId);
    const recent = store.turns(threadId, { limit: 1 }).at(0)?.tokenUsage?.inputTokens ?? 0;
    const tokens = recent > 0 || !compaction ? recent : Math.ceil(compaction.summary.length / 4);
    return { tokens, window: this.#options.settings.compaction.contextWindow };
  }
}

const configured = (config: ThreadConfig | undefined): Pick<StoredThread, 'config' | 'model'> => ({
  ...(config && { config }),
  ...(config?.model !== undefined && { model: config.model }),
});
