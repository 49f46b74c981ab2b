import type { AnyActorRef } from 'xstate';
import type { PinnedDirectory } from '../../../lib/index.ts';
import { defaults, type InputPart, type ModelListResult, type Turn } from '../../../protocol/index.ts';
import type { AgentProblem, Delegate } from '../../delegate.ts';
import type { Hooks } from '../../hooks/index.ts';
import type { Surroundings } from '../../instructions/index.ts';
import type { Library } from '../../library/index.ts';
import { type ModelProvider, modelFailure } from '../../model.ts';
import type { RuleBook } from '../../rules/index.ts';
import type { StoredThread, ThreadStore, TraceStore } from '../../thread-store.ts';
import type { Tool } from '../../tool.ts';
import type { ReadImage } from '../../tools/index.ts';
import type { OpenFork, OpenWorktree } from '../../worktrees/index.ts';
import { Feed, type Listener } from '../feed.ts';
import { Tracer } from '../tracer.ts';
import type { MadeDecision, RuntimeSettings } from '../turn/index.ts';
import type { DynamicTools, FileCheckpoints, Runtime, ThreadProcesses } from '../types.ts';
import { ThreadCatalog } from './catalog.ts';
import { TurnControl } from './control.ts';
import { ThreadFiles } from './files.ts';
import { InputQueue } from './input-queue.ts';
import { endCrashedTraces, markCrashed } from './recovery.ts';
import { ThreadRegistry } from './registry.ts';
import { ThreadTools } from './tools.ts';
import { type DaySpending, Turns } from './turns.ts';

export interface ThreadServiceOptions {
  /** Canonical path. */
  readonly workspacePath: string;
  /** Absolute paths; a thread may work in a directory below one of them. They need not exist. Default: none. */
  readonly worktreeRoots?: readonly string[];
  readonly store: ThreadStore;
  /** Absent: nothing is traced. */
  readonly traces?: TraceStore | undefined;
  /** False: nothing is traced; earlier traces stay until their thread is deleted. Default true. */
  readonly isTracing?: boolean;
  /** See `providerSource`. */
  readonly provider: () => Promise<ModelProvider>;
  /** External agent that does the turns; absent: the model does them. */
  readonly delegate?: Delegate | undefined;
  /** External agents that threads and sub-agents may name; absent: none. */
  readonly agentOf?: ((name: string) => Delegate | undefined) | undefined;
  /** Why a fork cannot have this agent; absent: the workspace is not trusted. */
  readonly agentProblem?: ((name: string) => AgentProblem | undefined) | undefined;
  /** All tools at the time of the call, MCP tools included. */
  readonly tools: () => readonly Tool[];
  /** Built-in tools that the configuration enables, by name; undefined: all. */
  readonly enabledTools?: readonly string[] | undefined;
  readonly settings: RuntimeSettings;
  /** Reads images that messages name by path. Default: only the path is sent to the model. */
  readonly readImage?: ReadImage | undefined;
  /** Absent: no files with instructions are read. */
  readonly surroundings?: Surroundings | undefined;
  /** Absent: no rules about calls. */
  readonly rules?: RuleBook | undefined;
  /** Absent: no background processes. */
  readonly processes?: ThreadProcesses | undefined;
  /** Absent: no hooks. */
  readonly hooks?: Hooks | undefined;
  /** Absent: no skills and prompt commands. */
  readonly library?: Library | undefined;
  /** Absent: files are not saved, and cannot be restored. */
  readonly checkpoints?: FileCheckpoints | undefined;
  /** Absent: sub-agents have no worktrees of their own. */
  readonly openWorktree?: OpenWorktree | undefined;
  /** Absent: forks have no directories of their own. */
  readonly openFork?: OpenFork | undefined;
  /** Money that all workspaces of the user spend. Default: only this service is counted. */
  readonly spending?: DaySpending | undefined;
  /** The workspace as the server opened it. Absent: not pinned. */
  readonly workspace?: PinnedDirectory | undefined;
  /** Redacts secrets. */
  readonly clean?: (text: string) => string;
  /** Logs a bug and returns its id. */
  readonly onBug: (error: unknown) => string;
  /** Receives the machine of every turn before it starts. */
  readonly observe?: (actor: AnyActorRef, threadId: string, turnId: string, input: readonly InputPart[]) => void;
  /** Called when a thread is deleted, one in memory included. */
  readonly onDeleted?: ((threadId: string) => void) | undefined;
  /** Called after the last event of every turn of a stored thread. */
  readonly onTurnEnd?: (thread: StoredThread, turn: Turn) => void;
}

const modelListMs = 15_000;

/** Threads of one workspace and the turns that run in them: at most one per thread. See `Runtime`. */
export class ThreadService implements Runtime {
  readonly feed: Feed;
  readonly #options: ThreadServiceOptions;
  readonly #registry: ThreadRegistry;
  readonly #tools: ThreadTools;
  readonly #turns: Turns;
  readonly #catalog: ThreadCatalog;
  readonly #control: TurnControl;
  readonly #files: ThreadFiles;

  constructor(options: ThreadServiceOptions) {
    const { workspacePath, worktreeRoots = [], store, traces, isTracing = true } = options;
    const { spending = new OwnSpending() } = options;
    const { settings, onBug, observe, clean = (text) => text, readImage = async () => undefined } = options;
    const { compaction, subAgent, maxSessionQueueSize } = settings;
    let loaded: ModelProvider | undefined;
    const provider = async () => {
      loaded = await options.provider();
      return loaded;
    };
    const everyTracer = traces && new Tracer(traces, clean);
    const tracer = isTracing ? everyTracer : undefined;
    const feed = new Feed(onBug);
    const registry = new ThreadRegistry(store, onBug);
    const tools = new ThreadTools({ tools: options.tools, enabled: options.enabledTools, maxDepth: subAgent.maxDepth });
    const turns = new Turns({
      workspacePath,
      settings,
      feed,
      tracer,
      provider,
      delegate: options.delegate,
      agentOf: options.agentOf,
      storageOf: (threadId) => registry.storageOf(threadId),
      mainStore: store,
      toolsOf: (thread, depth) => tools.of(thread, depth),
      readImage,
      surroundings: options.surroundings,
      rules: options.rules,
      hooks: options.hooks,
      processes: options.processes,
      library: options.library,
      checkpoints: options.checkpoints,
      openWorktree: options.openWorktree,
      spending,
      startChild: (parent, label, config) => this.#catalog.startChild(parent, label, config),
      clean,
      onBug,
      observe,
      touch: (threadId, at) => registry.touch(threadId, at),
      onEnd: (thread, turn) => this.#onTurnEnd(thread, turn),
    });
    const queue = new InputQueue(registry, feed, maxSessionQueueSize);
    this.feed = feed;
    this.#options = options;
    this.#registry = registry;
    this.#tools = tools;
    this.#turns = turns;
    this.#catalog = new ThreadCatalog({
      ...{ workspacePath, worktreeRoots, registry, feed, tools, turns, tracer, traces, provider, compaction, spending },
      processes: options.processes,
      onDeleted: options.onDeleted,
      // A provider that was not asked yet has no facts.
      windowOf: (model) =>
        compaction.contextWindow || (loaded?.facts?.(model).contextWindow ?? defaults.upstream.contextWindow),
    });
    this.#files = new ThreadFiles({
      ...{ registry, turns, feed, clean, checkpoints: options.checkpoints, processes: options.processes },
      openFork: options.openFork,
      workspace: options.workspace,
      agentProblem: options.agentProblem,
      read: (threadId) => this.read(threadId, { includeTurns: true }),
    });
    const { library } = options;
    const resolve = (input: readonly InputPart[], path: string) => library?.resolve(input, path) ?? input;
    const { workspace } = options;
    this.#control = new TurnControl({
      ...{ workspacePath, workspace, worktreeRoots, registry, feed, turns, queue, resolve },
    });
    markCrashed(store);
    if (everyTracer && traces) endCrashedTraces(traces, store, everyTracer);
  }

  get activeTurns(): number {
    return this.#turns.count;
  }

  async describe() {
    const { delegate } = this.#options;
    const { name: provider, model } = await this.#options.provider().catch((error: unknown) => {
      // Where another agent does the turns, our own may have no model.
      if (!delegate) throw error;
      return { name: delegate.name, model: delegate.name };
    });
    return { provider, model, tools: this.#tools.all().map(({ name }) => name) };
  }

  readonly start: Runtime['start'] = (options) => this.#catalog.start(options);
  readonly list: Runtime['list'] = (options) => this.#catalog.list(options);
  readonly read: Runtime['read'] = (threadId, options) => this.#catalog.read(threadId, options);
  readonly rename: Runtime['rename'] = (threadId, name) => this.#catalog.rename(threadId, name);
  readonly archive: Runtime['archive'] = (threadId, isArchived) => this.#catalog.archive(threadId, isArchived);
  readonly delete: Runtime['delete'] = (threadId) => this.#catalog.delete(threadId);
  readonly rollback: Runtime['rollback'] = (threadId, turns) => this.#catalog.rollback(threadId, turns);
  readonly fork: Runtime['fork'] = (threadId, fork) => this.#files.fork(threadId, fork);
  readonly merge: Runtime['merge'] = (...request) => this.#files.merge(...request);
  readonly undo: Runtime['undo'] = (...request) => this.#files.undo(...request);
  readonly checkpoints: Runtime['checkpoints'] = (threadId) => this.#files.list(threadId);
  readonly restoreFiles: Runtime['restoreFiles'] = (...request) => this.#files.restore(...request);
  readonly diff: Runtime['diff'] = (...request) => this.#files.diff(...request);
  readonly updateConfig: Runtime['updateConfig'] = (threadId, config) => this.#catalog.updateConfig(threadId, config);
  readonly compact: Runtime['compact'] = (threadId) => this.#catalog.compact(threadId);

  readonly startTurn: Runtime['startTurn'] = (...request) => this.#control.startTurn(...request);
  readonly runningTurn: Runtime['runningTurn'] = (threadId) => this.#control.runningTurn(threadId);
  readonly interrupt: Runtime['interrupt'] = (threadId, turnId) => this.#control.interrupt(threadId, turnId);
  readonly enqueue: Runtime['enqueue'] = (...request) => this.#control.enqueue(...request);
  readonly dequeue: Runtime['dequeue'] = (threadId, queuedInputId) => this.#control.dequeue(threadId, queuedInputId);
  readonly stopProcess: Runtime['stopProcess'] = (...request) => this.#catalog.stopProcess(...request);
  readonly steer: Runtime['steer'] = (...request) => this.#control.steer(...request);
  readonly approvals: Runtime['approvals'] = (threadId) => this.#control.approvals(threadId);
  readonly respond: Runtime['respond'] = (...answer) => this.#control.respond(...answer);
  /** Decision about an approval, while it is remembered. */
  readonly decisionOf = (requestId: string): MadeDecision | undefined => this.#control.decisionOf(requestId);

  resume(threadId: string, asker: Listener, dynamicTools?: DynamicTools) {
    const thread = this.read(threadId, { includeTurns: true });
    if (dynamicTools) this.#tools.register(threadId, dynamicTools);
    this.feed.subscribe(threadId, asker);
    const announce = () => {
      this.feed.publish(threadId, { method: 'thread/resumed', params: { thread } });
      this.#sendApprovals(threadId, asker);
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
      this.#sendApprovals(threadId, listener);
    };
    return { replay };
  }

  unsubscribe(threadId: string, listener: Listener): void {
    this.#registry.get(threadId);
    this.feed.unsubscribe(threadId, listener);
  }

  /** Deletes these turns of a thread: the conversation's part of a restore. */
  takeBack(threadId: string, turnIds: readonly string[]): void {
    this.#files.takeBack(threadId, turnIds);
  }

  /** Whether a stored thread works in a directory of its own, and in this one. */
  isInUse(directory: string): boolean {
    return this.#files.isInUse(directory);
  }

  /** Models of the agent that does the turns. Returns a failure of the provider as a result, as the protocol defines it. */
  async models(): Promise<ModelListResult> {
    const { delegate } = this.#options;
    if (delegate)
      return { success: true, models: delegate.offers().models.map((id) => ({ id, ownedBy: delegate.name })) };
    try {
      const provider = await this.#options.provider();
      return { success: true, models: [...(await provider.listModels(AbortSignal.timeout(modelListMs)))] };
    } catch (error) {
      const { code, message } = modelFailure(error, modelListMs);
      return { success: false, errorCode: code, errorMessage: message };
    }
  }

  async close(): Promise<void> {
    this.#control.close();
    await this.#turns.idle();
    this.#registry.durable.journal.flush();
    this.#turns.writePendingEnds();
  }

  #onTurnEnd(thread: StoredThread, turn: Turn): void {
    this.#options.processes?.rest?.(thread.id);
    if (this.#registry.isEphemeral(thread.id)) return;
    this.#options.onTurnEnd?.(thread, turn);
    this.#control.startNext(thread, turn);
  }

  #sendApprovals(threadId: string, listener: Listener): void {
    for (const params of this.#turns.approvals(threadId)) listener({ method: 'item/approval/request', params });
  }
}

/** Spending of this process, for services without a ledger. */
class OwnSpending implements DaySpending {
  #usd = 0;

  add(usd: number): void {
    this.#usd += usd;
  }

  today(): number {
    return this.#usd;
  }
}
