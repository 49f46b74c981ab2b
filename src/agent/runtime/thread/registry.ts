import { randomInt } from 'node:crypto';
import { AgentError } from '../../errors.ts';
import { MemoryStore } from '../../store/index.ts';
import { StorageError, type StoredThread, type ThreadStore } from '../../thread-store.ts';
import { DurableJournal, type Journal, VolatileJournal } from '../journal.ts';
import type { RuntimeServices } from '../services.ts';

/** Stores a thread: on disk, or in memory when it is ephemeral. */
export interface ThreadStorage {
  readonly store: ThreadStore;
  readonly journal: Journal;
}

/** The threads of a workspace: those on disk, and those that live in memory until they are deleted. */
export class ThreadRegistry {
  readonly durable: ThreadStorage;
  readonly #ephemeral: ThreadStorage;
  /** Transient threads that this process has loaded. */
  readonly #transient = new Set<string>();

  readonly #workspacePath: string;

  constructor({
    workspacePath,
    store,
    feed,
    onBug,
  }: Pick<RuntimeServices, 'workspacePath' | 'store' | 'feed' | 'onBug'>) {
    this.#workspacePath = workspacePath;
    this.durable = { store, journal: new DurableJournal(store, feed, onBug) };
    this.#ephemeral = { store: new MemoryStore(), journal: new VolatileJournal(feed, onBug) };
  }

  /** Directory in which a thread works. */
  pathOf({ config }: StoredThread): string {
    return config?.workspaceOverride ?? this.#workspacePath;
  }

  isEphemeral(threadId: string): boolean {
    return this.#ephemeral.store.thread(threadId) !== undefined;
  }

  /** Whether clients are never notified of the thread, because it is ephemeral or transient. */
  isUnlisted(threadId: string): boolean {
    return this.isEphemeral(threadId) || this.#transient.has(threadId);
  }

  /** Threads of the sub-agents of an unlisted thread. */
  subagentsOf(threadId: string): readonly string[] {
    const ids = this.isEphemeral(threadId) ? this.#ephemeral.store.threads().map(({ id }) => id) : [...this.#transient];
    return ids.filter((id) => this.storeOf(id).thread(id)?.parentThreadId === threadId);
  }

  /** Deletes a thread. */
  delete(threadId: string): void {
    this.storeOf(threadId).deleteThread(threadId);
    this.#transient.delete(threadId);
  }

  storageOf(threadId: string): ThreadStorage {
    return this.isEphemeral(threadId) ? this.#ephemeral : this.durable;
  }

  storeOf(threadId: string): ThreadStore {
    return this.storageOf(threadId).store;
  }

  /** @throws AgentError threadNotFound */
  get(threadId: string): StoredThread {
    const thread = this.#ephemeral.store.thread(threadId) ?? this.durable.store.thread(threadId);
    if (!thread) throw new AgentError('threadNotFound', { threadId });
    if (thread.isTransient) this.#transient.add(threadId);
    return thread;
  }

  /** @throws AgentError storageFailed */
  add(thread: StoredThread, isEphemeral: boolean): void {
    try {
      (isEphemeral ? this.#ephemeral : this.durable).store.putThread(thread);
      if (thread.isTransient) this.#transient.add(thread.id);
    } catch (error) {
      if (error instanceof StorageError) throw new AgentError('storageFailed', { threadId: thread.id }, error.message);
      throw error;
    }
  }

  /** @throws AgentError threadNotFound, moveRefused */
  update(threadId: string, change: Partial<StoredThread>): void {
    const thread = this.get(threadId);
    if (!('move' in change)) requireHere(thread);
    this.storeOf(threadId).putThread({ ...thread, ...change });
  }

  /** Checks no disk, because ids of unlisted threads are random and too long to collide. */
  newId(now: string, isUnlisted: boolean): string {
    const start = `thread_${now.slice(0, 10).replaceAll('-', '')}_`;
    if (isUnlisted) return `${start}${letters()}${letters()}`;
    for (;;) {
      const id = start + letters();
      if (!this.durable.store.thread(id)) return id;
    }
  }
}

/** @throws AgentError moveRefused for a conversation that moves or has moved to another place */
export function requireHere({ id, move }: StoredThread): void {
  if (move === undefined || move.state === 'arrived') return;
  const detail =
    move.state === 'left'
      ? `it has moved to ${move.place}. Continue there: oratorio chat --workspace ${move.place}`
      : `it is on its way to ${move.place}. Wait for the end of the move: oratorio move --list`;
  throw new AgentError('moveRefused', { threadId: id, place: move.place, state: move.state }, detail);
}

/** Six of them, for ids that people may read out. */
export const letters = (): string =>
  randomInt(36 ** 6)
    .toString(36)
    .padStart(6, '0');
