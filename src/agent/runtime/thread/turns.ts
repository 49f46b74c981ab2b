import { furtherDirectory } from '../../../config/index.ts';
import { Limit, userHome } from '../../../lib/index.ts';
import {
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
import type { Listener } from '../feed.ts';
import { PendingTurnWrites } from '../journal.ts';
import type { RuntimeServices } from '../services.ts';
import { type ResumedTurn, resumedOptions, type SuspendOptions, TurnRun, type TurnThread } from '../turn/index.ts';
import type { TurnOptions } from '../types.ts';
import { ThreadApprovals } from './approvals.ts';
import type { ThreadRegistry } from './registry.ts';
import { ResumeQueue } from './resume-queue.ts';
import { type ActiveTurn, RunningTurns } from './running-turns.ts';
import { Subagents } from './subagents.ts';
import type { ThreadTools } from './tools.ts';
import { requireSamePlace, requireWorkspace, withRealPath } from './worktree.ts';

/** Starts, registers, suspends and interrupts the turns of the threads, and publishes their state. */
export class Turns {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #tools: ThreadTools;
  readonly #onEnd: (thread: StoredThread, turn: Turn) => void;
  readonly running: RunningTurns;
  readonly approvals: ThreadApprovals;
  /** Turns of an earlier process that have not continued yet. They occupy their threads. */
  readonly resumed = new ResumeQueue();
  /** Threads whose turns the next process resumes. */
  readonly #suspended = new Set<string>();
  /** Threads whose turns are being taken back. */
  readonly #held = new Set<string>();
  readonly #pendingWrites = new PendingTurnWrites();
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
    this.running = new RunningTurns(services, registry);
    this.approvals = new ThreadApprovals(services.feed, this.running);
    this.#subagents = new Subagents({
      ...{ services, registry, tools },
      startTurn: (thread, input, options, depth) => this.start(thread, input, undefined, options, depth),
      delegateOf: (name) => this.#delegateOf(name),
      runOf: (threadId) => this.of(threadId),
    });
  }

  of(threadId: string): TurnRun | undefined {
    return this.running.of(threadId)?.run;
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
    this.running.enter(running);
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
    this.running.enter(running);
    const { journal } = this.#registry.storageOf(thread.id);
    const stored = journal.store(thread.id, write).catch((error: unknown) => {
      this.running.leave(thread.id);
      this.running.reportIdle();
      run.abandon();
      throw startFailure(thread.id, error);
    });
    // Where no other turn runs, none shares the commit.
    if (this.running.count === 1) journal.flush();
    return { run, stored };
  }

  /** Makes a turn, and the function that stores it. @throws AgentError turnInProgress, storageFailed */
  #made(
    thread: StoredThread,
    input: readonly InputPart[],
    asker: Listener | undefined,
    options: TurnOptions,
    depth: number,
  ): { readonly running: ActiveTurn; readonly write: () => void } {
    const { id } = thread;
    if (this.of(id) || this.#held.has(id)) throw new AgentError('turnInProgress', { threadId: id });
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

  /**
   * Registers a turn that an earlier process began: it occupies its thread, and its questions can be answered. `resumed` lets it continue.
   *
   * @returns reason why the turn cannot continue; undefined: it can
   */
  register(thread: StoredThread, resumed: ResumedTurn): string | undefined {
    const { settings, workspace, worktreeRoots } = this.#services;
    const { turn, facts } = resumed;
    requireWorkspace(workspace, this.#registry.pathOf(thread));
    if (thread.config) requireSamePlace(thread.config, withRealPath(thread.config, worktreeRoots));
    const prompt = turn.items.find((item) => item.type === 'userMessage');
    const parent = this.running.parentOf({ thread, options: facts.options });
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
    this.running.enter({ run, thread, asker: undefined, options, depth, subagents, isResumed: true });
    this.resumed.add(run, facts.resumes);
    return undefined;
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
      const parent = this.running.parentOf({ thread, options });
      if (!parent || !this.#isResumable(parent.thread, parent.options)) return false;
    }
    return !this.#registry.isEphemeral(id);
  }

  /** Whether nothing waits any more for this turn of a sub-agent. */
  isOrphan(thread: StoredThread, options: TurnOptions): boolean {
    return options.parentCallId !== undefined && !this.running.parentOf({ thread, options });
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

  /** Leaves the turns to the next process; see `TurnRun.suspend`. Turns that have not continued yet stay stored. */
  async suspendAll(options: SuspendOptions): Promise<void> {
    const waiting = this.resumed.stop();
    await Promise.all(
      [...this.running].map(async ({ run, thread }) => {
        if (!waiting.has(run)) await run.suspend(options);
        // The turn may have ended in the meantime.
        if (!this.running.leave(thread.id)) return;
        this.#suspended.add(thread.id);
        this.#publishRuntime(thread.id);
      }),
    );
  }

  interruptAll(): void {
    this.resumed.finish();
    for (const { run } of this.running) run.interrupt('shutdown');
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
      workspacePath: this.#registry.pathOf(thread),
      directories: directoriesOf(config),
      maxRounds: depth > 0 ? settings.subAgent.maxToolCallRounds : settings.maxToolCallRounds,
      // Changes of a sub-agent belong to the turn that spawned it.
      checkpoints: depth === 0 ? checkpoints : undefined,
      tools: () => this.#tools.of(thread, depth),
      dynamicTools: (signal) => this.#tools.whenRegistered(id, signal),
      isGranted: (scopeKey) => !config.readOnly && (store.hasGrant(id, scopeKey) || mainStore.hasGrant(id, scopeKey)),
      grant: (scopeKey, lasts) =>
        lasts === 'always' ? mainStore.putGrant(null, scopeKey) : store.putGrant(id, scopeKey),
      beforeEffects: (tool) => this.running.reportEffects(id, tool),
      spawnSubagent: (order, call, signal) => this.#subagents.spawn(this.running.of(id), order, call, signal),
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
    const ended = this.running.leave(turn.threadId);
    this.#publishRuntime(turn.threadId);
    // A turn that an earlier process began may end before it waits for its sub-agents.
    for (const { run } of this.running.childrenOf(turn.threadId)) run.interrupt('user');
    if (ended) this.#onEnd(ended.thread, turn);
    this.running.reportIdle();
  }
}

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
