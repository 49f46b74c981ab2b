import { furtherDirectory } from '../../../config/index.ts';
import { Limit, userHome } from '../../../lib/index.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  firstWords,
  type InputPart,
  ownAgent,
  type ThreadConfig,
  type ThreadRuntime,
  type Turn,
  writtenIn,
} from '../../../protocol/index.ts';
import { type Delegate, unknownAgent } from '../../delegate.ts';
import { AgentError } from '../../errors.ts';
import { StorageError, type StoredThread, type StoredTurn } from '../../thread-store.ts';
import type { StartedSubagent } from '../../turn-actor-store.ts';
import { isAsked, isResolved, type Listener, type ThreadEvent } from '../feed.ts';
import { PendingTurnWrites } from '../journal.ts';
import type { RuntimeServices } from '../services.ts';
import {
  ApprovalDecisions,
  type Decider,
  type MadeDecision,
  type ResumedTurn,
  resumedOptions,
  type SuspendOptions,
  type TurnPlace,
  TurnRun,
  type TurnThread,
} from '../turn/index.ts';
import type { TurnOptions } from '../types.ts';
import type { ThreadRegistry } from './registry.ts';
import { type RunningParent, Subagents } from './subagents.ts';
import type { ThreadTools } from './tools.ts';
import { requireSamePlace, requireWorkspace, withRealPath } from './worktree.ts';

interface Running extends RunningParent {
  /** Client that receives the events of this turn without a subscription. */
  readonly asker: Listener | undefined;
  /** An earlier process began it. */
  readonly isResumed?: boolean;
  /** Ends the work in the directory of the thread, which is pinned until then. */
  readonly release: (() => void) | undefined;
}

/** The running turns, at most one in a thread: starts and interrupts them, and passes decisions to them. */
export class Turns {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #tools: ThreadTools;
  readonly #onEnd: (thread: StoredThread, turn: Turn) => void;
  readonly #running = new Map<string, Running>();
  /** Threads whose turns the next process resumes. */
  readonly #suspended = new Set<string>();
  readonly #whenIdle = new Set<() => void>();
  /** Threads whose turns are being taken back. */
  readonly #held = new Set<string>();
  readonly #decisions = new ApprovalDecisions();
  readonly #pendingWrites = new PendingTurnWrites();
  /** Turns of an earlier process that have not continued yet. */
  readonly #registered: { readonly run: TurnRun; readonly resumes: number }[] = [];
  #nextResume: NodeJS.Timeout | undefined;
  readonly #subagents: Subagents;

  /** @param onEnd called after the last event of every turn */
  constructor(
    services: RuntimeServices,
    registry: ThreadRegistry,
    tools: ThreadTools,
    onEnd: (thread: StoredThread, turn: Turn) => void,
  ) {
    this.#services = services;
    this.#registry = registry;
    this.#tools = tools;
    this.#onEnd = onEnd;
    this.#subagents = new Subagents({
      ...{ services, registry, tools },
      startTurn: (thread, input, options, depth) => this.start(thread, input, undefined, options, depth),
      delegateOf: (name) => this.#delegateOf(name),
      runOf: (threadId) => this.of(threadId),
    });
    services.feed.watchApprovals((event) => this.#followApproval(event));
  }

  get count(): number {
    return this.#running.size;
  }

  get resumedCount(): number {
    return [...this.#running.values()].filter(({ isResumed }) => isResumed).length;
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
    return config?.workspaceOverride ?? this.#services.workspacePath;
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
    return {
      running: run !== undefined,
      waitingOnApproval: (run?.approvals.length ?? 0) > 0,
      ...(this.#suspended.has(threadId) && { suspended: true }),
    };
  }

  /** Pending approvals; of one thread with its sub-agents, because its clients answer for them. */
  approvals(threadId?: string): readonly ApprovalRequest[] {
    const running = [...this.#running.values()].filter(
      ({ thread }) => threadId === undefined || this.#isWithin(thread, threadId),
    );
    return running.flatMap(({ run }) => run.approvals);
  }

  /** False: no approval of this id is pending. */
  respond(requestId: string, decision: ApprovalDecision, decider: Decider): boolean {
    for (const { run } of this.#running.values()) {
      if (!run.decide(requestId, decision, decider)) continue;
      this.#decisions.remember(requestId, { decision, decidedBy: decider.by, client: decider.client });
      return true;
    }
    return false;
  }

  /** Remembers the decisions in a turn that an earlier process left unfinished. */
  restoreDecisions({ items }: Turn): void {
    this.#decisions.restore(items);
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
    const { running, write } = this.#made(thread, input, asker, options, depth);
    inStore(thread.id, () => this.#registry.storeOf(thread.id).transaction(write));
    this.#enter(running);
    return running.run;
  }

  /**
   * Starts a turn whose row is stored with the next commit: one commit for the starts of a moment costs far less than one for each.
   *
   * @returns the turn, which may begin when `stored` has resolved; that rejects with AgentError storageFailed
   * @throws AgentError turnInProgress, storageFailed
   */
  startWithOthers(
    thread: StoredThread,
    input: readonly InputPart[],
    asker: Listener | undefined,
    options: TurnOptions = {},
  ): { readonly run: TurnRun; readonly stored: Promise<void> } {
    const { running, write } = this.#made(thread, input, asker, options, 0);
    const { run } = running;
    this.#enter(running);
    const { journal } = this.#registry.storageOf(thread.id);
    const stored = journal.store(thread.id, write).catch((error: unknown) => {
      this.#leave(thread.id);
      this.#reportIdle();
      run.abandon();
      throw startFailure(thread.id, error);
    });
    // Where no other turn runs, none shares the commit.
    if (this.#running.size === 1) journal.flush();
    return { run, stored };
  }

  /** Makes a turn, and the function that stores it. @throws AgentError turnInProgress, storageFailed */
  #made(
    thread: StoredThread,
    input: readonly InputPart[],
    asker: Listener | undefined,
    options: TurnOptions,
    depth: number,
  ): { readonly running: Omit<Running, 'release'>; readonly write: () => void } {
    const { id } = thread;
    if (this.#running.has(id) || this.#held.has(id)) throw new AgentError('turnInProgress', { threadId: id });
    const { store, journal } = this.#registry.storageOf(id);
    journal.flush(id);
    this.#writePendingEnd(id);
    const turnId = `turn_${String(store.nextTurnNumber(id)).padStart(3, '0')}`;
    const run = new TurnRun({
      services: this.#services,
      thread: this.#threadOf(thread, asker, depth, this.#isResumable(thread, options)),
      ...{ turnId, input },
      options: this.#tools.hasClientTools(id) ? { ...options, hasDynamicTools: true } : options,
    });
    const { items: _, ...turn } = run.snapshot();
    const write = () => {
      store.putTurn(turn);
      store.touchThread(id, turn.startedAt);
      for (const item of run.firstItems) store.putItem(id, item);
      run.putFacts();
      options.alsoStore?.(turnId);
    };
    const subagents = new Limit(this.#services.settings.subAgent.maxConcurrency);
    return { running: { run, thread, asker, options, depth, subagents }, write };
  }

  #enter(running: Omit<Running, 'release'>): void {
    const { thread } = running;
    const release = this.#services.workspace?.hold(this.pathOf(thread));
    this.#running.set(thread.id, { ...running, release });
  }

  /**
   * Registers a turn that an earlier process began: it occupies its thread, and its questions can be answered. `resume` lets it continue.
   *
   * @returns reason why the turn cannot continue; undefined: it can
   */
  register(thread: StoredThread, resumed: ResumedTurn): string | undefined {
    const { settings, workspace, worktreeRoots } = this.#services;
    const { turn, facts } = resumed;
    requireWorkspace(workspace, this.pathOf(thread));
    if (thread.config) requireSamePlace(thread.config, withRealPath(thread.config, worktreeRoots));
    const prompt = turn.items.find((item) => item.type === 'userMessage');
    const parent = this.#parentOf({ thread, options: facts.options });
    const options = resumedOptions(facts.options, facts.rules, this.#services, thread, parent?.run.policy);
    if (typeof options === 'string') return options;
    const depth = parent ? parent.depth + 1 : 0;
    const run = new TurnRun({
      services: this.#services,
      thread: this.#threadOf(thread, undefined, depth, true),
      ...{ turnId: turn.id, input: prompt?.input ?? [], options, resumed },
    });
    if (parent) run.onCost = (costUsd) => parent.run.addSubagentCost(costUsd);
    const subagents = new Limit(settings.subAgent.maxConcurrency);
    const release = workspace?.hold(this.pathOf(thread));
    const asker = undefined;
    this.#running.set(thread.id, { run, thread, asker, options, depth, subagents, release, isResumed: true });
    this.#registered.push({ run, resumes: facts.resumes });
    return undefined;
  }

  /** Turns of an earlier process that have not continued yet. */
  get registered(): readonly TurnPlace[] {
    return this.#registered.map(({ run }) => run.place);
  }

  /** Replaces the `beforeEffects` of a running turn, because its caller ended with an earlier process. */
  watchEffects(threadId: string, turnId: string, beforeEffects: (tool: string) => void): void {
    const running = this.#running.get(threadId);
    if (running?.run.turnId !== turnId) return;
    this.#running.set(threadId, { ...running, options: { ...running.options, beforeEffects } });
  }

  /**
   * Lets the registered turns continue. When one of them has ended its agent server several times, they continue one after the other: so the
   * others are not counted as guilty.
   */
  resume(): void {
    for (const { run } of this.#registered) run.resumeFiles();
    const gapMs = this.#registered.some(({ resumes }) => resumes >= suspiciousResumes) ? resumeGapMs : 0;
    this.#resumeNext(gapMs);
  }

  #resumeNext(gapMs: number): void {
    const run = this.#registered.shift()?.run;
    if (!run) return;
    run.begin();
    if (gapMs === 0) {
      this.#resumeNext(0);
      return;
    }
    this.#nextResume = setTimeout(() => {
      run.clearSuspicion();
      this.#resumeNext(gapMs);
    }, gapMs);
  }

  /** External agent that does the turns of a thread; undefined: our own. */
  delegateNameOf({ config }: StoredThread): string | undefined {
    return this.#delegateOf(config?.agent)?.name;
  }

  /** Whether the next process can resume the turn: not in an ephemeral thread; a sub-agent continues with its parent's turn. */
  #isResumable(thread: StoredThread, options: TurnOptions): boolean {
    const { id, parentThreadId } = thread;
    if (this.#services.settings.turns.resume === 'never') return false;
    if (parentThreadId !== undefined) {
      const parent = this.#parentOf({ thread, options });
      if (!parent || !this.#isResumable(parent.thread, parent.options)) return false;
    }
    return !this.#registry.isEphemeral(id);
  }

  /** Running turn that waits for a turn of a sub-agent; undefined: none waits. */
  #parentOf({ thread, options }: Pick<Running, 'thread' | 'options'>): Running | undefined {
    const { parentThreadId } = thread;
    if (options.parentCallId === undefined || parentThreadId === undefined) return undefined;
    return this.#running.get(parentThreadId);
  }

  /** Whether nothing waits any more for this turn of a sub-agent. */
  isOrphan(thread: StoredThread, options: TurnOptions): boolean {
    return options.parentCallId !== undefined && !this.#parentOf({ thread, options });
  }

  /** Reports a call with effects to the callers of a turn and of its parents. */
  #reportEffects(running: Running | undefined, tool: string): void {
    if (!running) return;
    running.options.beforeEffects?.(tool);
    this.#reportEffects(this.#parentOf(running), tool);
  }

  #isSubagentLost({ threadId, turnId }: StartedSubagent): boolean {
    if (this.of(threadId)?.turnId === turnId) return false;
    const turn = this.#registry.storeOf(threadId).turn(threadId, turnId);
    return turn === undefined || endedWithProcess(turn);
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
        if (!(error instanceof AgentError)) this.#services.onBug(error);
      }
    }
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.add(resolve));
  }

  /** Leaves the turns to the next process; see `TurnRun.suspend`. Turns that have not continued yet stay stored. */
  async suspendAll(options: SuspendOptions): Promise<void> {
    clearTimeout(this.#nextResume);
    const waiting = new Set(this.#registered.splice(0).map(({ run }) => run));
    await Promise.all(
      [...this.#running].map(async ([threadId, { run }]) => {
        if (!waiting.has(run)) await run.suspend(options);
        // The turn may have ended in the meantime.
        if (!this.#running.delete(threadId)) return;
        this.#suspended.add(threadId);
        this.#publishRuntime(threadId);
      }),
    );
  }

  interruptAll(): void {
    clearTimeout(this.#nextResume);
    this.#resumeNext(0);
    for (const { run } of this.#running.values()) run.interrupt('shutdown');
  }

  /** @throws AgentError storageFailed */
  #writePendingEnd(threadId: string): void {
    const { store } = this.#registry.storageOf(threadId);
    inStore(threadId, () => this.#pendingWrites.write(threadId, store));
  }

  #threadOf(thread: StoredThread, asker: Listener | undefined, depth: number, isResumable: boolean): TurnThread {
    const { settings, checkpoints, store: mainStore } = this.#services;
    const { id, config = {} } = thread;
    const { store, journal } = this.#registry.storageOf(id);
    const delegate = this.#delegateOf(config.agent);
    return {
      ...{ id, config, store, journal, asker, delegate },
      channel: thread.identity?.channelName,
      // The effects of an external agent's work are unknown.
      isResumable: isResumable && (!delegate || settings.turns.resumeAgents),
      workspacePath: this.pathOf(thread),
      directories: directoriesOf(config),
      maxRounds: depth > 0 ? settings.subAgent.maxToolCallRounds : settings.maxToolCallRounds,
      // Changes of a sub-agent belong to the turn that spawned it.
      checkpoints: depth === 0 ? checkpoints : undefined,
      tools: () => this.#tools.of(thread, depth),
      dynamicTools: (signal) => this.#tools.whenRegistered(id, signal),
      isGranted: (scopeKey) => !config.readOnly && (store.hasGrant(id, scopeKey) || mainStore.hasGrant(id, scopeKey)),
      grant: (scopeKey, lasts) =>
        lasts === 'always' ? mainStore.putGrant(null, scopeKey) : store.putGrant(id, scopeKey),
      beforeEffects: (tool) => this.#reportEffects(this.#running.get(id), tool),
      spawnSubagent: (order, call, signal) => this.#subagents.spawn(this.#running.get(id), order, call, signal),
      isSubagentLost: (subagent) => this.#isSubagentLost(subagent),
      onChange: (input) => this.#publishRuntime(id, input),
      onEnd: (turn, isStored) => this.#ended(turn, isStored),
    };
  }

  /** @param name agent of the thread; undefined: the workspace's agent @returns undefined: our own agent */
  #delegateOf(name: string | undefined): Delegate | undefined {
    const { delegate, agentOf } = this.#services;
    if (name === undefined) return delegate;
    if (name === ownAgent) return undefined;
    return agentOf?.(name) ?? unknownAgent(name, agentOf !== undefined);
  }

  /** Remembers a decision, and publishes the event to the clients of the parents: they answer for its sub-agents, too. */
  #followApproval(event: ThreadEvent): void {
    if (isResolved(event)) this.#decisions.note(event.params);
    else if (!isAsked(event)) return;
    const running = this.#running.get(event.params.threadId);
    if (!running) return;
    for (const parentId of this.#parentsOf(running.thread)) {
      this.#services.feed.publish(parentId, event, this.#running.get(parentId)?.asker);
    }
  }

  #isWithin(thread: StoredThread, ancestorId: string): boolean {
    if (thread.id === ancestorId) return true;
    return this.#running.has(ancestorId) && [...this.#parentsOf(thread)].includes(ancestorId);
  }

  /** Threads above a thread, nearest first, up to the first without a running turn. A stored cycle ends the list. */
  *#parentsOf({ id, parentThreadId }: StoredThread): Generator<string> {
    const seen = new Set([id]);
    for (let next = parentThreadId; next !== undefined && !seen.has(next); ) {
      seen.add(next);
      yield next;
      next = this.#running.get(next)?.thread.parentThreadId;
    }
  }

  /** @param input of a turn that begins: the first one names the thread */
  #publishRuntime(threadId: string, input?: readonly InputPart[]): void {
    if (this.#registry.isUnlisted(threadId)) return;
    const isFirst = input && !this.#registry.storeOf(threadId).hasSeveralTurns(threadId);
    const firstInput = isFirst && firstWords(writtenIn(input));
    this.#services.feed.broadcast({
      method: 'thread/runtimeChanged',
      params: { threadId, runtime: this.runtimeOf(threadId), ...(firstInput && { firstInput }) },
    });
  }

  #ended(turn: Turn, isStored: boolean): void {
    if (!isStored) this.#pendingWrites.add(turn);
    const running = this.#leave(turn.threadId);
    this.#publishRuntime(turn.threadId);
    // A turn that an earlier process began may end before it waits for its sub-agents.
    for (const child of this.#running.values()) {
      if (child.options.parentCallId !== undefined && child.thread.parentThreadId === turn.threadId)
        child.run.interrupt('user');
    }
    if (running) this.#onEnd(running.thread, turn);
    this.#reportIdle();
  }

  /** The thread has no turn any more. */
  #leave(threadId: string): Running | undefined {
    const running = this.#running.get(threadId);
    this.#running.delete(threadId);
    running?.release?.();
    return running;
  }

  #reportIdle(): void {
    if (this.#running.size > 0) return;
    for (const resolve of this.#whenIdle) resolve();
    this.#whenIdle.clear();
  }
}

/** Times that a turn has ended its agent server, after which turns continue one after the other, and the time between two. */
const suspiciousResumes = 2;
const resumeGapMs = 2_000;

/** @throws AgentError storageFailed, when `work` throws a StorageError */
function inStore(threadId: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw startFailure(threadId, error);
  }
}

const startFailure = (threadId: string, error: unknown): unknown =>
  error instanceof StorageError ? new AgentError('storageFailed', { threadId }, error.message) : error;

const lostCodes: readonly (string | undefined)[] = ['agentInterrupted', 'resumeFailed', 'resumedTooOften'];

/** Whether a turn ended because it could not continue after the end of its process. */
const endedWithProcess = ({ interruptedBy, error }: StoredTurn): boolean =>
  interruptedBy === 'crash' || interruptedBy === 'shutdown' || lostCodes.includes(error?.code);

/** Directories of the settings that can be read now. */
function directoriesOf({ additionalDirectories = [] }: ThreadConfig): readonly string[] {
  if (additionalDirectories.length === 0) return [];
  const home = userHome();
  return additionalDirectories.flatMap((path) => furtherDirectory(path, home) ?? []);
}
