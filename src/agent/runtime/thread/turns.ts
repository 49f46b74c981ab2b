import type { AnyActorRef } from 'xstate';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type InputPart,
  ownAgent,
  type ThreadConfig,
  type ThreadRuntime,
  type Turn,
} from '../../../protocol/index.ts';
import { type Delegate, unknownAgent } from '../../delegate.ts';
import { AgentError } from '../../errors.ts';
import type { Hooks } from '../../hooks/index.ts';
import type { Surroundings } from '../../instructions/index.ts';
import type { Library } from '../../library/index.ts';
import type { ModelProvider } from '../../model.ts';
import type { RuleBook } from '../../rules/index.ts';
import type { StoredThread, ThreadStore } from '../../thread-store.ts';
import { StorageError } from '../../thread-store.ts';
import type { Tool } from '../../tool.ts';
import type { ReadImage } from '../../tools/index.ts';
import type { OpenWorktree } from '../../worktrees/index.ts';
import type { Feed, Listener, ThreadEvent } from '../feed.ts';
import type { Journal } from '../journal.ts';
import { PendingTurnWrites } from '../pending-turn-writes.ts';
import type { Tracer } from '../tracer.ts';
import { ApprovalDecisions, type MadeDecision, type RuntimeSettings, type TurnHost, TurnRun } from '../turn/index.ts';
import type { FileCheckpoints, ThreadProcesses, TurnOptions } from '../types.ts';
import { Semaphore } from './semaphore.ts';
import { type RunningParent, Subagents } from './subagents.ts';

/** Stores a thread: on disk, or in memory when it is ephemeral. */
export interface ThreadStorage {
  readonly store: ThreadStore;
  readonly journal: Journal;
}

export interface TurnsOptions {
  readonly workspacePath: string;
  readonly settings: RuntimeSettings;
  readonly feed: Feed;
  readonly tracer: Tracer | undefined;
  readonly provider: () => Promise<ModelProvider>;
  /** Absent: the model does the turns. */
  readonly delegate: Delegate | undefined;
  /** External agent by its name; absent: the user does not trust this workspace. */
  readonly agentOf: ((name: string) => Delegate | undefined) | undefined;
  readonly storageOf: (threadId: string) => ThreadStorage;
  /** Permanent grants belong to the workspace. */
  readonly mainStore: ThreadStore;
  readonly toolsOf: (thread: StoredThread, depth: number) => readonly Tool[];
  /** Creates the thread of a sub-agent. */
  readonly startChild: (parent: StoredThread, label: string | undefined, config: ThreadConfig) => StoredThread;
  readonly readImage: ReadImage;
  readonly surroundings: Surroundings | undefined;
  /** Absent: no rules about calls. */
  readonly rules: RuleBook | undefined;
  /** Absent: no background processes. */
  readonly processes: ThreadProcesses | undefined;
  /** Absent: no hooks. */
  readonly hooks: Hooks | undefined;
  /** Absent: no skills. */
  readonly library: Library | undefined;
  /** Absent: files are not saved. */
  readonly checkpoints: FileCheckpoints | undefined;
  /** Absent: sub-agents have no worktrees of their own. */
  readonly openWorktree: OpenWorktree | undefined;
  readonly spending: DaySpending;
  readonly clean: (text: string) => string;
  readonly onBug: (error: unknown) => string;
  readonly observe:
    | ((actor: AnyActorRef, threadId: string, turnId: string, input: readonly InputPart[]) => void)
    | undefined;
  /** Records when a thread was last active. */
  readonly touch: (threadId: string, at: string) => void;
  readonly onEnd: (thread: StoredThread, turn: Turn) => void;
}

/** Spending of the user on this local day, in US dollars. */
export interface DaySpending {
  add(usd: number): void;
  today(): number;
}

interface Running extends RunningParent {
  /** Client that receives the events of this turn without a subscription. */
  readonly asker: Listener | undefined;
}

/** The running turns, at most one in a thread: starts and interrupts them, and passes decisions to them. */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #running = new Map<string, Running>();
  readonly #whenIdle = new Set<() => void>();
  readonly #learnedWindows = new Map<string, number>();
  /** Threads whose turns are being taken back. */
  readonly #held = new Set<string>();
  readonly #decisions = new ApprovalDecisions();
  readonly #pendingWrites = new PendingTurnWrites();
  readonly #subagents: Subagents;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#subagents = new Subagents({
      ...options,
      startTurn: (thread, input, turnOptions, depth) => this.start(thread, input, undefined, turnOptions, depth),
      delegateOf: (name) => this.#delegateOf(name),
    });
  }

  get count(): number {
    return this.#running.size;
  }

  of(threadId: string): TurnRun | undefined {
    return this.#running.get(threadId)?.run;
  }

  /** A thread that runs a turn in this tree of files; undefined: none. */
  runningIn(path: string): string | undefined {
    for (const { thread } of this.#running.values()) if (this.pathOf(thread) === path) return thread.id;
    return undefined;
  }

  /** Directory in which a thread works. */
  pathOf({ config }: StoredThread): string {
    return config?.workspaceOverride ?? this.#options.workspacePath;
  }

  /** No turn starts in the thread while `work` runs. */
  async hold<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    if (this.#held.has(threadId)) throw new AgentError('turnInProgress', { threadId });
    this.#held.add(threadId);
    try {
      return await work();
    } finally {
      this.#held.delete(threadId);
    }
  }

  runtimeOf(threadId: string): ThreadRuntime {
    const run = this.of(threadId);
    return { running: run !== undefined, waitingOnApproval: (run?.approvals.length ?? 0) > 0 };
  }

  /** Pending approvals; of one thread with its sub-agents, because its clients answer for them. */
  approvals(threadId?: string): readonly ApprovalRequest[] {
    const running = [...this.#running.values()].filter(
      ({ thread }) => threadId === undefined || this.#isWithin(thread, threadId),
    );
    return running.flatMap(({ run }) => run.approvals);
  }

  /** False: no approval of this id is pending. */
  respond(requestId: string, decision: ApprovalDecision, by: 'user' | 'policy', client?: string): boolean {
    for (const { run } of this.#running.values()) {
      if (!run.decide(requestId, decision, { by, client })) continue;
      this.#decisions.remember(requestId, { decision, decidedBy: by, client });
      return true;
    }
    return false;
  }

  /** Decision about an approval, while it is remembered. */
  decisionOf(requestId: string): MadeDecision | undefined {
    return this.#decisions.of(requestId);
  }

  /** @throws AgentError turnInProgress, storageFailed */
  start(
    thread: StoredThread,
    input: readonly InputPart[],
    asker: Listener | undefined,
    options: TurnOptions = {},
    depth = 0,
  ): TurnRun {
    const { storageOf, settings, observe } = this.#options;
    const { id } = thread;
    if (this.#running.has(id) || this.#held.has(id)) throw new AgentError('turnInProgress', { threadId: id });
    const { store, journal } = storageOf(id);
    journal.flush();
    this.#writePendingEnd(id);
    const turnId = `turn_${String(store.nextTurnNumber(id)).padStart(3, '0')}`;
    const maxRounds = depth > 0 ? settings.subAgent.maxToolCallRounds : settings.maxToolCallRounds;
    const run = new TurnRun({
      host: this.#hostOf(thread, maxRounds, depth),
      turnId,
      input,
      options,
      observe: observe && ((actor) => observe(actor, id, turnId, input)),
    });
    const { items: _, ...turn } = run.snapshot();
    inStore(id, () =>
      store.transaction(() => {
        store.putTurn(turn);
        store.putThread({ ...thread, lastActiveAt: turn.startedAt });
        for (const item of run.firstItems) store.putItem(id, item);
        options.alsoStore?.(turnId);
      }),
    );
    const subagents = new Semaphore(settings.subAgent.maxConcurrency);
    this.#running.set(id, { run, thread, asker, options, depth, subagents });
    return run;
  }

  /** Present state of a stored turn: a running turn, and one whose end could not be written, differ from the store. */
  current(turn: Turn): Turn {
    const run = this.of(turn.threadId);
    return run?.turnId === turn.id ? run.snapshot() : this.#pendingWrites.endOf(turn);
  }

  /** Writes the ends that could not be written before. Those that fail again are marked as crashed at the next start. */
  writePendingEnds(): void {
    for (const threadId of this.#pendingWrites.threadIds) {
      try {
        this.#writePendingEnd(threadId);
      } catch (error) {
        // The disk is still full, which is not a bug.
        if (!(error instanceof AgentError)) this.#options.onBug(error);
      }
    }
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.add(resolve));
  }

  interruptAll(): void {
    for (const { run } of this.#running.values()) run.interrupt('shutdown');
  }

  /** @throws AgentError storageFailed */
  #writePendingEnd(threadId: string): void {
    const { store } = this.#options.storageOf(threadId);
    inStore(threadId, () => this.#pendingWrites.write(threadId, store));
  }

  #hostOf(thread: StoredThread, maxRounds: number, depth: number): TurnHost {
    const {
      workspacePath,
      settings,
      tracer,
      provider,
      storageOf,
      mainStore,
      toolsOf,
      readImage,
      surroundings,
      rules,
      hooks,
      library,
      clean,
      onBug,
    } = this.#options;
    const { spending } = this.#options;
    const { id, config = {} } = thread;
    const { store, journal } = storageOf(id);
    return {
      threadId: id,
      config,
      workspacePath: config.workspaceOverride ?? workspacePath,
      projectPath: workspacePath,
      settings,
      maxRounds,
      store,
      journal,
      tracer,
      provider,
      delegate: this.#delegateOf(config.agent),
      learnedWindows: this.#learnedWindows,
      spending: {
        add: (usd) => spending.add(usd),
        ofThread: () => store.threadCost(id),
        today: () => spending.today(),
      },
      tools: () => toolsOf(thread, depth),
      readImage,
      surroundings,
      rules,
      hooks,
      library,
      // Changes of a sub-agent belong to the turn that spawned it.
      checkpoints: depth === 0 ? this.#options.checkpoints : undefined,
      publish: (event) => this.#publish(id, event),
      clean,
      isGranted: (scopeKey) => !config.readOnly && (store.hasGrant(id, scopeKey) || mainStore.hasGrant(id, scopeKey)),
      grant: (scopeKey, lasts) =>
        lasts === 'always' ? mainStore.putGrant(null, scopeKey) : store.putGrant(id, scopeKey),
      spawnSubagent: (order, signal) => this.#subagents.spawn(this.#running.get(id), order, signal),
      onChange: () => this.#publishRuntime(id),
      touch: (at) => this.#options.touch(id, at),
      onEnd: (turn, isStored) => this.#ended(turn, isStored),
      onBug,
    };
  }

  /** @param name agent of the thread; undefined: the workspace's agent @returns undefined: our own agent */
  #delegateOf(name: string | undefined): Delegate | undefined {
    const { delegate, agentOf } = this.#options;
    if (name === undefined) return delegate;
    if (name === ownAgent) return undefined;
    return agentOf?.(name) ?? unknownAgent(name, agentOf !== undefined);
  }

  #publish(threadId: string, event: ThreadEvent): void {
    const running = this.#running.get(threadId);
    if (event.method === 'item/approval/resolved') this.#decisions.note(event.params);
    this.#options.feed.publish(threadId, event, running?.asker);
    // Clients of the parent answer for its sub-agents too.
    const parentId = running?.thread.parentThreadId;
    if (parentId !== undefined && event.method.startsWith('item/approval/')) this.#publish(parentId, event);
  }

  #isWithin({ id, parentThreadId }: StoredThread, ancestorId: string): boolean {
    if (id === ancestorId) return true;
    const parent = parentThreadId === undefined ? undefined : this.#running.get(parentThreadId);
    return parent !== undefined && this.#isWithin(parent.thread, ancestorId);
  }

  #publishRuntime(threadId: string): void {
    // Ephemeral threads are neither listed nor reported.
    if (this.#options.storageOf(threadId).store !== this.#options.mainStore) return;
    this.#options.feed.broadcast({
      method: 'thread/runtimeChanged',
      params: { threadId, runtime: this.runtimeOf(threadId) },
    });
  }

  #ended(turn: Turn, isStored: boolean): void {
    if (!isStored) this.#pendingWrites.add(turn);
    const running = this.#running.get(turn.threadId);
    this.#running.delete(turn.threadId);
    this.#publishRuntime(turn.threadId);
    if (running) this.#options.onEnd(running.thread, turn);
    if (this.#running.size > 0) return;
    for (const resolve of this.#whenIdle) resolve();
    this.#whenIdle.clear();
  }
}

/** @throws AgentError storageFailed, when `work` throws a StorageError */
function inStore(threadId: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof StorageError) throw new AgentError('storageFailed', { threadId }, error.message);
    throw error;
  }
}
