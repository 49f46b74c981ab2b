import type { Limit } from '../../../lib/index.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { Listener } from '../feed.ts';
import type { RuntimeServices } from '../services.ts';
import type { TurnRun } from '../turn/index.ts';
import type { TurnOptions } from '../types.ts';
import type { ThreadRegistry } from './registry.ts';

export interface ActiveTurn {
  readonly run: TurnRun;
  readonly thread: StoredThread;
  /** Client that receives the events of this turn without a subscription. */
  readonly asker: Listener | undefined;
  readonly options: TurnOptions;
  /** 0: the turn of a user. */
  readonly depth: number;
  /** Limits the sub-agents that run at a time. */
  readonly subagents: Limit;
  /** The turn began in an earlier process. */
  readonly isResumed?: boolean;
}

/** The running turns, at most one in a thread. The turn of a sub-agent has the turn that waits for it as its parent. */
export class RunningTurns {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #turns = new Map<string, ActiveTurn & { readonly release: (() => void) | undefined }>();
  readonly #whenIdle = new Set<() => void>();

  constructor(services: RuntimeServices, registry: ThreadRegistry) {
    this.#services = services;
    this.#registry = registry;
  }

  get count(): number {
    return this.#turns.size;
  }

  [Symbol.iterator](): Iterator<ActiveTurn> {
    return this.#turns.values();
  }

  of(threadId: string): ActiveTurn | undefined {
    return this.#turns.get(threadId);
  }

  /** A thread that runs a turn in this tree of files; undefined: none. */
  threadIn(path: string): string | undefined {
    return [...this].find(({ thread }) => this.#registry.pathOf(thread) === path)?.thread.id;
  }

  /** Adds a turn, and pins the directory of its thread until the turn leaves. */
  enter(turn: ActiveTurn): void {
    const { thread } = turn;
    const release = this.#services.workspace?.hold(this.#registry.pathOf(thread));
    this.#turns.set(thread.id, { ...turn, release });
  }

  /** Removes the turn of a thread. Call `reportIdle` when its end is complete. */
  leave(threadId: string): ActiveTurn | undefined {
    const turn = this.#turns.get(threadId);
    this.#turns.delete(threadId);
    turn?.release?.();
    return turn;
  }

  /** Resolves when no turn runs. */
  async idle(): Promise<void> {
    if (this.#turns.size > 0) await new Promise<void>((resolve) => this.#whenIdle.add(resolve));
  }

  reportIdle(): void {
    if (this.#turns.size > 0) return;
    for (const resolve of this.#whenIdle) resolve();
    this.#whenIdle.clear();
  }

  /** Replaces the `beforeEffects` of a turn, because its caller ended with an earlier process. */
  watchEffects(threadId: string, turnId: string, beforeEffects: (tool: string) => void): void {
    const turn = this.#turns.get(threadId);
    if (turn?.run.turnId !== turnId) return;
    this.#turns.set(threadId, { ...turn, options: { ...turn.options, beforeEffects } });
  }

  /** Reports a call with effects to the callers of a turn and of its parents. */
  reportEffects(threadId: string, tool: string): void {
    for (let turn = this.of(threadId); turn; turn = this.parentOf(turn)) turn.options.beforeEffects?.(tool);
  }

  /** Running turn that waits for a turn of a sub-agent; undefined: none waits. */
  parentOf({ thread, options }: Pick<ActiveTurn, 'thread' | 'options'>): ActiveTurn | undefined {
    const { parentThreadId } = thread;
    if (options.parentCallId === undefined || parentThreadId === undefined) return undefined;
    return this.#turns.get(parentThreadId);
  }

  /** Turns of sub-agents for which a turn of this thread waits. */
  childrenOf(threadId: string): readonly ActiveTurn[] {
    return [...this].filter(
      ({ thread, options }) => options.parentCallId !== undefined && thread.parentThreadId === threadId,
    );
  }

  /** Threads above a thread, nearest first, up to the first without a running turn. A stored cycle ends the list. */
  *parentsOf({ id, parentThreadId }: StoredThread): Generator<string> {
    const seen = new Set([id]);
    for (let next = parentThreadId; next !== undefined && !seen.has(next); ) {
      seen.add(next);
      yield next;
      next = this.#turns.get(next)?.thread.parentThreadId;
    }
  }

  /** Running turns of a thread and of its sub-agents. */
  within(threadId: string): readonly ActiveTurn[] {
    return [...this].filter(({ thread }) => {
      if (thread.id === threadId) return true;
      return this.#turns.has(threadId) && [...this.parentsOf(thread)].includes(threadId);
    });
  }
}
