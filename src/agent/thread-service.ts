import { randomInt } from 'node:crypto';
import type { Identity, InputPart, RpcMethod, RpcResult, Thread, ThreadSummary, Turn } from '../protocol/index.ts';
import { AgentError } from './errors.ts';
import { Feed, type Listener } from './feed.ts';
import { historyOf, textOf } from './history.ts';
import { ModelError, type ModelProvider } from './model.ts';
import type { StoredThread, ThreadStore } from './thread-store.ts';
import { TurnRun } from './turn-run.ts';

export interface ThreadServiceOptions {
  readonly workspacePath: string;
  readonly store: ThreadStore;
  /** See `providerSource`. */
  readonly provider: () => Promise<ModelProvider>;
  readonly onBug: (error: unknown) => void;
  /** Called after the last event of every turn. */
  readonly onTurnEnd?: (thread: StoredThread, turn: Turn) => void;
}

export interface StartThread {
  readonly identity?: Identity | undefined;
  readonly displayName?: string | undefined;
  readonly model?: string | undefined;
}

export interface ListThreads {
  readonly identity?: Identity | undefined;
  readonly channelName?: string | undefined;
  readonly includeArchived?: boolean | undefined;
}

const modelListMs = 15_000;

/**
 * Threads of one workspace and the turns that run in them: at most one per thread. What starts something gives back how
 * it will look, and a function that lets it happen, so that an answer can be sent before the events that it causes.
 */
export class ThreadService {
  readonly feed: Feed;
  readonly #options: ThreadServiceOptions;
  readonly #running = new Map<string, TurnRun>();
  readonly #idle = new Set<() => void>();
  #isClosing = false;

  constructor(options: ThreadServiceOptions) {
    this.#options = options;
    this.feed = new Feed(options.onBug);
  }

  get activeTurns(): number {
    return this.#running.size;
  }

  start({ identity, displayName, model }: StartThread): { thread: Thread; announce: () => void } {
    const now = new Date().toISOString();
    const thread: StoredThread = {
      id: this.#newThreadId(now),
      workspacePath: this.#options.workspacePath,
      status: 'active',
      ...(displayName !== undefined && { displayName }),
      ...(identity !== undefined && { identity }),
      ...(model !== undefined && { model }),
      createdAt: now,
      lastActiveAt: now,
    };
    this.#options.store.putThread(thread);
    return { thread, announce: () => this.feed.broadcast({ method: 'thread/started', params: { thread } }) };
  }

  /** Most recently active first. Without an identity: all of them. */
  list({ identity, channelName = identity?.channelName, includeArchived = false }: ListThreads): ThreadSummary[] {
    return this.#options.store
      .threads()
      .filter((thread) => includeArchived || thread.status !== 'archived')
      .filter((thread) => channelName === undefined || thread.identity?.channelName === channelName)
      .filter((thread) => identity?.userId === undefined || thread.identity?.userId === identity.userId)
      .map((thread) => ({ ...thread, runtime: { running: this.#running.has(thread.id) } }))
      .toSorted((a, b) => b.lastActiveAt.localeCompare(a.lastActiveAt));
  }

  /** @throws AgentError threadNotFound */
  read(threadId: string, includeTurns: boolean): Thread {
    const thread = this.#thread(threadId);
    return includeTurns ? { ...thread, turns: this.#turns(threadId) } : thread;
  }

  /** @throws AgentError threadNotFound */
  resume(threadId: string, asker: Listener): { thread: Thread; announce: () => void } {
    const thread = this.read(threadId, true);
    const announce = () => this.feed.publish(threadId, { method: 'thread/resumed', params: { thread } }, asker);
    return { thread, announce };
  }

  /**
   * From the call on `listener` hears of the thread. The function given back tells it of a turn that runs already, as it
   * stands: the deltas that follow continue it without a gap.
   * @throws AgentError threadNotFound
   */
  subscribe(threadId: string, listener: Listener): { replay: () => void } {
    this.#thread(threadId);
    this.feed.subscribe(threadId, listener);
    const run = this.#running.get(threadId);
    return {
      replay: () => {
        if (run) listener({ method: 'turn/started', params: { threadId, turn: run.snapshot() } });
      },
    };
  }

  /** @throws AgentError threadNotFound */
  unsubscribe(threadId: string, listener: Listener): void {
    this.#thread(threadId);
    this.feed.unsubscribe(threadId, listener);
  }

  /**
   * Reserves the thread for a turn; `begin` lets it run. `asker` hears of it without a subscription.
   * @throws AgentError threadNotFound, threadNotActive, turnInProgress, overloaded (shutting down)
   */
  startTurn(threadId: string, input: readonly InputPart[], asker?: Listener): { turn: Turn; begin: () => void } {
    const thread = this.#thread(threadId);
    if (this.#isClosing) throw new AgentError('overloaded', { threadId }, 'the server is shutting down');
    if (thread.status !== 'active') throw new AgentError('threadNotActive', { threadId, status: thread.status });
    if (this.#running.has(threadId)) throw new AgentError('turnInProgress', { threadId });
    const { store, provider, onBug } = this.#options;
    const earlier = store.turns(threadId);
    const run = new TurnRun({
      threadId,
      turnId: `turn_${String(earlier.length + 1).padStart(3, '0')}`,
      input,
      messages: [...historyOf(earlier), { role: 'user', text: textOf(input) }],
      model: thread.model,
      firstItemNumber: earlier.reduce((count, turn) => count + turn.items.length, 1),
      provider,
      publish: (event) => this.feed.publish(threadId, event, asker),
      save: (turn) => store.putTurn(turn),
      onEnd: (turn) => this.#ended(turn),
      onBug,
    });
    this.#running.set(threadId, run);
    const turn = run.snapshot();
    store.putTurn(turn);
    store.putThread({ ...thread, lastActiveAt: turn.startedAt });
    return { turn, begin: () => run.begin() };
  }

  /**
   * Finds the turn to be ended; the function given back ends it.
   * @throws AgentError threadNotFound, turnNotFound, turnNotRunning
   */
  interrupt(threadId: string, turnId: string): () => void {
    this.#thread(threadId);
    const run = this.#running.get(threadId);
    if (run?.snapshot().id === turnId) return () => run.interrupt();
    const isKnown = this.#options.store.turns(threadId).some(({ id }) => id === turnId);
    throw new AgentError(isKnown ? 'turnNotRunning' : 'turnNotFound', { threadId, turnId });
  }

  /** Never throws for what the provider does: the protocol has a place for it in the result. */
  async models(): Promise<RpcResult<'model/list' & RpcMethod>> {
    try {
      const provider = await this.#options.provider();
      return { success: true, models: [...(await provider.listModels(AbortSignal.timeout(modelListMs)))] };
    } catch (error) {
      if (error instanceof ModelError) return { success: false, errorCode: error.code, errorMessage: error.message };
      if ((error as Error).name !== 'TimeoutError') throw error;
      const errorMessage = `The upstream did not answer within ${modelListMs} ms.`;
      return { success: false, errorCode: 'upstreamUnreachable', errorMessage };
    }
  }

  /** Interrupts every turn and resolves when all have ended; no turn starts any more. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const run of this.#running.values()) run.interrupt();
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.add(resolve));
  }

  #ended(turn: Turn): void {
    this.#running.delete(turn.threadId);
    const thread = this.#thread(turn.threadId);
    this.#options.store.putThread({ ...thread, lastActiveAt: turn.completedAt ?? thread.lastActiveAt });
    this.#options.onTurnEnd?.(thread, turn);
    if (this.#running.size === 0) for (const resolve of this.#idle) resolve();
  }

  #thread(threadId: string): StoredThread {
    const thread = this.#options.store.thread(threadId);
    if (!thread) throw new AgentError('threadNotFound', { threadId });
    return thread;
  }

  /** What is stored, and the turn that runs as it stands now. */
  #turns(threadId: string): Turn[] {
    const run = this.#running.get(threadId)?.snapshot();
    return this.#options.store.turns(threadId).map((turn) => (turn.id === run?.id ? run : turn));
  }

  #newThreadId(now: string): string {
    for (;;) {
      const letters = Array.from({ length: 6 }, () => randomInt(36).toString(36)).join('');
      const id = `thread_${now.slice(0, 10).replaceAll('-', '')}_${letters}`;
      if (!this.#options.store.thread(id)) return id;
    }
  }
}
