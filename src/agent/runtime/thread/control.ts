import type {
  ApprovalDecision,
  ApprovalRequest,
  InputPart,
  QuestionAnswer,
  QueuedInput,
  Turn,
} from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { Listener } from '../feed.ts';
import type { RuntimeServices } from '../services.ts';
import type { MadeDecision, TurnPlace, TurnRun } from '../turn/index.ts';
import type { RunningTurn, StartedTurn, TurnOptions } from '../types.ts';
import { InputQueue, type MessageMarks } from './input-queue.ts';
import { requireHere, type ThreadRegistry } from './registry.ts';
import type { RunningTurns } from './running-turns.ts';
import type { Turns } from './turns.ts';
import { requireSamePlace, requireWorkspace, withRealPath } from './worktree.ts';

/** Requests of clients for the turns of a thread: start, queue, steer, interrupt, and answers to approvals. */
export class TurnControl {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #turns: Turns;
  readonly #queue: InputQueue;
  #isClosing = false;

  constructor(services: RuntimeServices, registry: ThreadRegistry, turns: Turns) {
    this.#services = services;
    this.#registry = registry;
    this.#turns = turns;
    this.#queue = new InputQueue(services, registry);
  }

  /** Whether no turn starts any more, because the server ends. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Number of running turns. */
  get count(): number {
    return this.#turns.running.count;
  }

  /** Number of running turns that an earlier process began. */
  get resumedCount(): number {
    return [...this.#turns.running].filter(({ isResumed }) => isResumed).length;
  }

  /** @throws AgentError threadNotFound, threadNotActive, moveRefused, turnInProgress, overloaded, storageFailed, workspaceLost */
  start(
    threadId: string,
    input: readonly InputPart[],
    asker: Listener | undefined,
    options?: TurnOptions,
  ): StartedTurn {
    const { thread, resolved } = this.#admit(threadId, input, options);
    return started(this.#turns.start(thread, resolved, asker, options));
  }

  /** Starts a turn whose row is stored with those of others. Call `begin` when `stored` has resolved. @throws as `start` */
  startWithOthers(
    threadId: string,
    input: readonly InputPart[],
    asker: Listener | undefined,
    options?: TurnOptions,
  ): StartedTurn & { readonly stored: Promise<void> } {
    const { thread, resolved } = this.#admit(threadId, input, options);
    const { run, stored } = this.#turns.startWithOthers(thread, resolved, asker, options);
    return { ...started(run), stored };
  }

  #admit(threadId: string, input: readonly InputPart[], options: TurnOptions | undefined) {
    const { workspace, worktreeRoots } = this.#services;
    const thread = this.#registry.get(threadId);
    if (this.#isClosing) throw new AgentError('overloaded', { threadId }, 'the server is shutting down');
    requireHere(thread);
    if (thread.status !== 'active') throw new AgentError('threadNotActive', { threadId, status: thread.status });
    requireWorkspace(workspace);
    // The directory may be missing, or a link, since the last turn.
    if (thread.config) requireSamePlace(thread.config, withRealPath(thread.config, worktreeRoots));
    const path = this.#registry.pathOf(thread);
    if (path !== workspace?.path) requireWorkspace(workspace, path);
    // The chat API passes the texts of its callers on unchanged.
    return { thread, resolved: options?.tools === undefined ? this.#resolve(thread, input) : input };
  }

  /** Turns of an earlier process that continue when `Runtime.resume` is called. */
  get registered(): readonly TurnPlace[] {
    return this.#turns.resumed.places;
  }

  /** The turn that occupies the thread; undefined when a turn can start. */
  running(threadId: string): RunningTurn | undefined {
    return this.#turns.of(threadId);
  }

  /** Reports calls with effects of a turn that an earlier process began; see `TurnOptions.beforeEffects`. */
  watchEffects(...watch: Parameters<RunningTurns['watchEffects']>): void {
    this.#turns.running.watchEffects(...watch);
  }

  interrupt(threadId: string, turnId: string): () => void {
    this.#registry.get(threadId);
    const run = this.#turns.of(threadId);
    if (run?.turnId === turnId) return () => run.interrupt('user');
    throw this.#noSuchTurn(threadId, turnId);
  }

  enqueue(threadId: string, input: readonly InputPart[], marks: MessageMarks = {}, asker?: Listener) {
    const known = this.#queue.received(threadId, marks);
    if (known) return { queuedInput: known, queuedInputs: this.#queue.list(threadId), begin: () => {} };
    const queuedInput = this.#queue.make(input, marks);
    const isFirst = !this.#turns.of(threadId);
    const started = isFirst ? this.start(threadId, input, asker, marks) : undefined;
    if (!started) this.#queue.add(threadId, queuedInput, asker);
    this.#queue.noteReceived(threadId, queuedInput);
    return {
      queuedInput,
      queuedInputs: this.#queue.list(threadId),
      begin: started?.begin ?? (() => this.#queue.publish(threadId)),
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
    const thread = this.#registry.get(threadId);
    const run = this.#turns.of(threadId);
    if (run?.turnId !== turnId) throw this.#noSuchTurn(threadId, turnId);
    const queued = queuedInputId === undefined ? [] : this.#queue.peek(threadId, queuedInputId).input;
    const resolved = this.#resolve(thread, [...queued, ...(input ?? [])]);
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

  /** Every listed approval is stored: after a kill it has the same id. @throws AgentError threadNotFound */
  approvals(threadId?: string): readonly ApprovalRequest[] {
    if (threadId !== undefined) this.#registry.get(threadId);
    this.#registry.durable.journal.flush();
    return this.#turns.approvals.pending(threadId);
  }

  /** @throws AgentError approvalNotFound, approvalTimeout */
  respond(requestId: string, decision: ApprovalDecision, by: 'user' | 'policy' = 'user', client?: string): void {
    if (this.#turns.approvals.respond(requestId, decision, { by, client })) return;
    const hasExpired = this.#turns.approvals.decisionOf(requestId)?.decidedBy === 'timeout';
    throw new AgentError(hasExpired ? 'approvalTimeout' : 'approvalNotFound', { requestId });
  }

  /** Answers a question. @throws AgentError questionNotFound; questionInvalid, which leaves it open */
  answer(requestId: string, { action, content }: QuestionAnswer, client?: string): void {
    const isAsked = this.#turns.approvals
      .pending()
      .some((request) => request.requestId === requestId && request.question);
    if (isAsked && this.#turns.approvals.respond(requestId, action, { by: 'user', client, content })) return;
    throw new AgentError('questionNotFound', { requestId, ...this.decisionOf(requestId) });
  }

  /** Decision about an approval, while it is remembered. */
  decisionOf(requestId: string): MadeDecision | undefined {
    return this.#turns.approvals.decisionOf(requestId);
  }

  /** No turn starts any more. */
  stop(): void {
    this.#isClosing = true;
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
      const { begin } = this.start(threadId, next.input, this.#queue.askerOf(next.id), {
        sender: next.sender,
        messageId: next.messageId,
        // A refused start loses no input, and a crash neither loses nor repeats it.
        alsoStore: () => this.#queue.take(threadId, next.id),
      });
      this.#queue.publish(threadId);
      begin();
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const message = `The next queued input could not start: ${error.detail ?? error.message}`;
      this.#services.feed.publish(threadId, {
        method: 'system/event',
        params: { threadId, kind: 'queueBlocked', message },
      });
    }
  }

  /** Gives references to skills and commands their text. */
  #resolve(thread: StoredThread, input: readonly InputPart[]): readonly InputPart[] {
    return this.#services.library?.resolve(input, this.#registry.pathOf(thread)) ?? input;
  }

  #noSuchTurn(threadId: string, turnId: string): AgentError {
    const isKnown = this.#registry.storageOf(threadId).store.turn(threadId, turnId) !== undefined;
    return new AgentError(isKnown ? 'turnNotRunning' : 'turnNotFound', { threadId, turnId });
  }
}

const started = (run: TurnRun): StartedTurn => ({
  turn: run.snapshot(),
  begin: () => run.begin(),
  ended: run.ended,
});
