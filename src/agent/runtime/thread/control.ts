import type { PinnedDirectory } from '../../../lib/index.ts';
import type { ApprovalDecision, ApprovalRequest, InputPart, QueuedInput, Turn } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { Feed, Listener } from '../feed.ts';
import type { MadeDecision } from '../turn/index.ts';
import type { RunningTurn, TurnOptions } from '../types.ts';
import type { InputQueue } from './input-queue.ts';
import type { ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';
import { requireSamePlace, requireWorkspace, withRealPath } from './worktree.ts';

export interface TurnControlOptions {
  /** See `ThreadServiceOptions`. */
  readonly worktreeRoots: readonly string[];
  readonly registry: ThreadRegistry;
  readonly feed: Feed;
  readonly turns: Turns;
  readonly queue: InputQueue;
  readonly workspacePath: string;
  readonly workspace: PinnedDirectory | undefined;
  /** Gives references to skills and commands their text. */
  readonly resolve: (input: readonly InputPart[], workspacePath: string) => readonly InputPart[];
}

/** Requests of clients for the turns of a thread: start, queue, steer, interrupt, and answers to approvals. */
export class TurnControl {
  readonly #worktreeRoots: readonly string[];
  readonly #registry: TurnControlOptions['registry'];
  readonly #feed: TurnControlOptions['feed'];
  readonly #turns: TurnControlOptions['turns'];
  readonly #queue: TurnControlOptions['queue'];
  readonly #workspacePath: string;
  readonly #workspace: TurnControlOptions['workspace'];
  readonly #resolve: TurnControlOptions['resolve'];
  #isClosing = false;

  constructor(options: TurnControlOptions) {
    this.#worktreeRoots = options.worktreeRoots;
    this.#registry = options.registry;
    this.#feed = options.feed;
    this.#turns = options.turns;
    this.#queue = options.queue;
    this.#workspacePath = options.workspacePath;
    this.#workspace = options.workspace;
    this.#resolve = options.resolve;
  }

  startTurn(threadId: string, input: readonly InputPart[], asker: Listener | undefined, options?: TurnOptions) {
    const thread = this.#registry.get(threadId);
    if (this.#isClosing) throw new AgentError('overloaded', { threadId }, 'the server is shutting down');
    if (thread.status !== 'active') throw new AgentError('threadNotActive', { threadId, status: thread.status });
    requireWorkspace(this.#workspace);
    // The directory may be missing, or a link, since the last turn.
    if (thread.config) requireSamePlace(thread.config, withRealPath(thread.config, this.#worktreeRoots));
    const workspacePath = thread.config?.workspaceOverride ?? this.#workspacePath;
    // The chat API passes the texts of its callers on unchanged.
    const resolved = options?.tools === undefined ? this.#resolve(input, workspacePath) : input;
    const run = this.#turns.start(thread, resolved, asker, options);
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
    return {
      queuedInput,
      queuedInputs: this.#queue.list(threadId),
      begin: () => this.#queue.publish(threadId),
    };
  }

  dequeue(threadId: string, queuedInputId: string): readonly QueuedInput[] {
    this.#queue.take(threadId, queuedInputId);
    this.#queue.publish(threadId);
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
    const workspacePath = this.#registry.get(threadId).config?.workspaceOverride ?? this.#workspacePath;
    const resolved = this.#resolve([...queued, ...(input ?? [])], workspacePath);
    if (!run.steer(resolved)) {
      const { delegateName } = run;
      const why =
        delegateName === undefined
          ? undefined
          : `The agent ${delegateName} cannot be steered: send the input after the turn.`;
      throw new AgentError('turnNotRunning', { threadId, turnId }, why);
    }
    if (queuedInputId !== undefined) {
      this.#queue.take(threadId, queuedInputId);
      this.#queue.publish(threadId);
    }
    return { turnId, queuedInputs: this.#queue.list(threadId) };
  }

  approvals(threadId?: string): readonly ApprovalRequest[] {
    if (threadId !== undefined) this.#registry.get(threadId);
    return this.#turns.approvals(threadId);
  }

  respond(requestId: string, decision: ApprovalDecision, by: 'user' | 'policy' = 'user', client?: string): void {
    if (this.#turns.respond(requestId, decision, by, client)) return;
    const hasExpired = this.#turns.decisionOf(requestId)?.decidedBy === 'timeout';
    throw new AgentError(hasExpired ? 'approvalTimeout' : 'approvalNotFound', { requestId });
  }

  decisionOf(requestId: string): MadeDecision | undefined {
    return this.#turns.decisionOf(requestId);
  }

  /** Interrupts every turn; no turn starts any more. */
  close(): void {
    this.#isClosing = true;
    this.#turns.interruptAll();
  }

  /** Starts the next queued input. Only after a completed turn: after a failure a user should decide. */
  startNext({ id: threadId }: StoredThread, { status }: Turn): void {
    if (status !== 'completed' || this.#isClosing) return;
    const [next] = this.#queue.list(threadId);
    if (!next) return;
    try {
      const { begin } = this.startTurn(threadId, next.input, this.#queue.askerOf(next.id), {
        sender: next.sender,
        // A refused start loses no input, and a crash neither loses nor repeats it.
        alsoStore: () => this.#queue.take(threadId, next.id),
      });
      this.#queue.publish(threadId);
      begin();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const message = `The next queued input could not start: ${error.detail ?? error.message}`;
      this.#feed.publish(threadId, {
        method: 'system/event',
        params: { threadId, kind: 'queueBlocked', message },
      });
    }
  }

  #noSuchTurn(threadId: string, turnId: string): AgentError {
    const isKnown = this.#registry.storageOf(threadId).store.turn(threadId, turnId) !== undefined;
    return new AgentError(isKnown ? 'turnNotRunning' : 'turnNotFound', { threadId, turnId });
  }
}
