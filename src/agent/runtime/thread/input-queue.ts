import type { InputPart, QueuedInput } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { Listener } from '../feed.ts';
import type { RuntimeServices } from '../services.ts';
import { letters, type ThreadRegistry } from './registry.ts';

/** Inputs that wait for the turn of their thread to complete: stored and bounded. Their clients are known to this process only. */
export class InputQueue {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #askers = new Map<string, Listener>();

  constructor(services: RuntimeServices, registry: ThreadRegistry) {
    this.#services = services;
    this.#registry = registry;
  }

  list(threadId: string): readonly QueuedInput[] {
    return this.#registry.storeOf(threadId).queue(threadId);
  }

  /** Creates an input without queueing it. */
  make(input: readonly InputPart[], sender: string | undefined): QueuedInput {
    const now = new Date();
    return {
      id: `queued_${now.getTime()}_${letters()}`,
      input: [...input],
      ...(sender !== undefined && { sender }),
      createdAt: now.toISOString(),
    };
  }

  /** @throws AgentError overloaded */
  add(threadId: string, queued: QueuedInput, asker: Listener | undefined): void {
    const limit = this.#services.settings.maxSessionQueueSize;
    if (this.list(threadId).length >= limit) {
      throw new AgentError('overloaded', { threadId, limit }, 'the queue of the thread is full');
    }
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

  publish(threadId: string): void {
    const params = { threadId, queuedInputs: [...this.list(threadId)] };
    this.#services.feed.publish(threadId, { method: 'thread/queue/updated', params });
  }
}
