import type { InputPart, QueuedInput } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { Listener } from '../feed.ts';
import type { RuntimeServices } from '../services.ts';
import { letters, type ThreadRegistry } from './registry.ts';

/** Facts that the client of a message adds to it. */
export type MessageMarks = Partial<Pick<QueuedInput, 'sender' | 'messageId'>>;

/** Number of message ids to remember, because a client repeats a message within seconds after a lost answer. */
const maxReceived = 1_000;
/** Number of threads whose empty queue is remembered. */
const maxEmpty = 10_000;

/** Inputs that wait for the turn of their thread to complete: stored and bounded. Their clients are known to this process only. */
export class InputQueue {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #askers = new Map<string, Listener>();
  readonly #received = new Map<string, QueuedInput>();
  /** Threads with an empty queue: each turn asks at its end. */
  readonly #empty = new Set<string>();

  constructor(services: RuntimeServices, registry: ThreadRegistry) {
    this.#services = services;
    this.#registry = registry;
  }

  list(threadId: string): readonly QueuedInput[] {
    if (this.#empty.has(threadId)) return [];
    const queue = this.#registry.storeOf(threadId).queue(threadId);
    if (queue.length === 0) this.#noteEmpty(threadId);
    return queue;
  }

  /** Creates an input without queueing it. */
  make(input: readonly InputPart[], { sender, messageId }: MessageMarks): QueuedInput {
    const now = new Date();
    return {
      id: `queued_${now.getTime()}_${letters()}`,
      input: [...input],
      ...(sender !== undefined && { sender }),
      createdAt: now.toISOString(),
      ...(messageId !== undefined && { messageId }),
    };
  }

  /** The earlier input with the same `messageId`. */
  received(threadId: string, { messageId }: MessageMarks): QueuedInput | undefined {
    return messageId === undefined ? undefined : this.#received.get(`${threadId} ${messageId}`);
  }

  noteReceived(threadId: string, queued: QueuedInput): void {
    if (queued.messageId === undefined) return;
    this.#received.set(`${threadId} ${queued.messageId}`, queued);
    const [oldest] = this.#received.keys();
    if (this.#received.size > maxReceived && oldest !== undefined) this.#received.delete(oldest);
  }

  /** @throws AgentError overloaded */
  add(threadId: string, queued: QueuedInput, asker: Listener | undefined): void {
    const limit = this.#services.settings.maxSessionQueueSize;
    if (this.list(threadId).length >= limit) {
      throw new AgentError('overloaded', { threadId, limit }, 'the queue of the thread is full');
    }
    this.#empty.delete(threadId);
    this.#registry.storeOf(threadId).putQueued(threadId, queued);
    if (asker) this.#askers.set(queued.id, asker);
  }

  /** @throws AgentError threadNotFound, queuedInputNotFound */
  peek(threadId: string, queuedInputId: string): QueuedInput {
    this.#registry.get(threadId);
    const queued = this.list(threadId).find(({ id }) => id === queuedInputId);
    if (!queued) throw new AgentError('queuedInputNotFound', { threadId, queuedInputId });
    return queued;
  }

  /** Client of an input that this process received. */
  askerOf(queuedInputId: string): Listener | undefined {
    return this.#askers.get(queuedInputId);
  }

  /** Removes an input from the queue. @throws AgentError threadNotFound, queuedInputNotFound */
  take(threadId: string, queuedInputId: string): QueuedInput {
    const queued = this.peek(threadId, queuedInputId);
    this.#registry.storeOf(threadId).deleteQueued(threadId, queuedInputId);
    this.#askers.delete(queuedInputId);
    return queued;
  }

  #noteEmpty(threadId: string): void {
    if (this.#empty.size >= maxEmpty) this.#empty.clear();
    this.#empty.add(threadId);
  }

  publish(threadId: string): void {
    const params = { threadId, queuedInputs: [...this.list(threadId)] };
    this.#services.feed.publish(threadId, { method: 'thread/queue/updated', params });
  }
}
