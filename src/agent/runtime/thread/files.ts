import { quotedPath } from '../../../config/index.ts';
import { messageOf } from '../../../lib/index.ts';
import {
  type BackgroundProcessInfo,
  type Checkpoint,
  conflictWords,
  type FileAct,
  type FileDiff,
  type Frozen,
  gitWords,
  type RestoredFiles,
  restoredWords,
  type Thread,
} from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import { timestamp } from '../clock.ts';
import type { RuntimeServices } from '../services.ts';
import type { FileCheckpoints, FileRestore, ForkThread, StartedThread, TurnWork } from '../types.ts';
import type { ThreadCatalog } from './catalog.ts';
import { forkThread, inheritedBy, recordApplied, recordTakenBack, requireAgent } from './fork.ts';
import { requireHere, type ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';
import { requireWorkspace } from './worktree.ts';

interface RestoreOrder {
  readonly turnIds: readonly string[];
  readonly paths?: readonly string[] | undefined;
  readonly force: boolean;
  readonly conversation: readonly string[];
}

/** Takes back turns with their files, and shows their changes. */
export class ThreadFiles {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #turns: Turns;
  readonly #catalog: ThreadCatalog;

  constructor(services: RuntimeServices, registry: ThreadRegistry, turns: Turns, catalog: ThreadCatalog) {
    this.#services = services;
    this.#registry = registry;
    this.#turns = turns;
    this.#catalog = catalog;
  }

  /** Takes back the last turns with their files. @throws AgentError turnInProgress, restoreConflict, checkpointFailed */
  async undo(
    threadId: string,
    numTurns: number,
    force: boolean,
  ): Promise<{ readonly thread: Thread } & Frozen<RestoredFiles>> {
    const thread = this.#registry.get(threadId);
    return this.#turns.hold(threadId, async () => {
      const last = this.#registry.storageOf(threadId).store.turns(threadId, { limit: numTurns });
      const turnIds = last.map(({ id }) => id);
      const files = await this.#restore(thread, { turnIds, force, conversation: turnIds });
      return { thread: this.#catalog.read(threadId, { includeTurns: true }), ...files };
    });
  }

  /** Copies a conversation. @throws AgentError threadNotFound, turnNotFound, agentUnavailable, checkpointFailed, workspaceLost, workspaceOverrideRefused */
  async fork(threadId: string, { atTurnId, worktree, displayName, agent }: ForkThread): Promise<StartedThread> {
    const { feed, agentProblem } = this.#services;
    const registry = this.#registry;
    const original = registry.get(threadId);
    if (agent !== undefined) requireAgent(agent, agentProblem);
    const { store, journal } = registry.storageOf(threadId);
    journal.flush();
    if (atTurnId !== undefined && !store.turn(threadId, atTurnId)) {
      throw new AgentError('turnNotFound', { threadId, turnId: atTurnId });
    }
    const end = atTurnId === undefined ? undefined : { threadId, turnId: atTurnId };
    const place = worktree ? await this.#openFork(this.#registry.pathOf(original), end) : undefined;
    const inherited = inheritedBy(original.config ?? {}, agent);
    const config = place === undefined ? inherited : { ...inherited, workspaceOverride: place };
    const isUnlisted = registry.isUnlisted(threadId);
    const newId = registry.newId(timestamp(), isUnlisted);
    const { thread } = forkThread({ store, original, newId, atTurnId, displayName, config });
    if (place !== undefined) {
      const workspacePath = this.#registry.pathOf(original);
      await this.#with((checkpoints) => checkpoints.keepCopy(place, workspacePath));
    }
    const announce = () => {
      if (!isUnlisted) feed.broadcast({ method: 'thread/started', params: { thread } });
    };
    return { thread: this.#catalog.read(thread.id, { includeTurns: true }), announce };
  }

  /**
   * Merges the files of a fork into the workspace of its original.
   *
   * @param force overwrites files that both changed
   * @throws AgentError threadNotFound, turnInProgress, restoreConflict, checkpointFailed, workspaceLost
   */
  async merge(threadId: string, force: boolean): Promise<Frozen<RestoredFiles>> {
    const registry = this.#registry;
    const turns = this.#turns;
    const fork = registry.get(threadId);
    const { forkedFromThreadId } = fork;
    const place = fork.config?.workspaceOverride;
    if (forkedFromThreadId === undefined || place === undefined) {
      throw new AgentError('checkpointFailed', { threadId }, 'the conversation is not a fork with a worktree');
    }
    const original = registry.get(forkedFromThreadId);
    const into = { threadId: original.id, workspacePath: this.#registry.pathOf(original) };
    this.#requireIdle(original, into.workspacePath);
    this.#requireIdle(fork, place);
    return turns.hold(threadId, () =>
      turns.hold(original.id, async () => {
        const from = { threadId, workspacePath: place };
        const merged = this.#report(
          original.id,
          await this.#with((checkpoints) => checkpoints.merge(from, into, force)),
          'merged',
        );
        recordApplied(this.#services.feed, registry, threadId, merged.restoreId);
        return merged;
      }),
    );
  }

  /** @returns the directory with the files in it */
  async #openFork(workspacePath: string, end: { threadId: string; turnId: string } | undefined): Promise<string> {
    const { openFork, workspace } = this.#services;
    requireWorkspace(workspace);
    if (!openFork) {
      const path = quotedPath(workspacePath);
      const detail = `a fork with files needs trust. Run: oratorio trust ${path}; then: oratorio restart ${path}`;
      throw new AgentError('workspaceRestricted', { workspacePath }, detail);
    }
    let announced = '';
    const place = await openFork(workspacePath, (path) => {
      announced = path;
      return this.#with((checkpoints) => checkpoints.announceCopy(path, workspacePath));
    });
    if (typeof place !== 'string') {
      if (announced !== '') await this.#with((checkpoints) => checkpoints.removeCopy(announced, workspacePath));
      throw new AgentError('workspaceOverrideRefused', { reason: 'fork' }, place.reason);
    }
    await this.#with((checkpoints) => checkpoints.copyTo(place, workspacePath, end));
    return place;
  }

  /** Checkpoints of a thread, oldest first. @throws AgentError checkpointFailed */
  async checkpoints(threadId: string): Promise<readonly Frozen<Checkpoint>[]> {
    const thread = this.#registry.get(threadId);
    return this.#with((checkpoints) => checkpoints.list(threadId, this.#registry.pathOf(thread)));
  }

  /**
   * Restores files to their state before a turn, or before a restore; the conversation stays.
   *
   * @throws AgentError turnNotFound, turnInProgress, restoreConflict, checkpointFailed
   */
  async restore(
    threadId: string,
    turnId: string,
    { paths, force }: { readonly paths?: readonly string[] | undefined; readonly force: boolean },
  ): Promise<Frozen<RestoredFiles>> {
    const thread = this.#registry.get(threadId);
    const turnIds = await this.#with((checkpoints) =>
      checkpoints.turnsFrom(threadId, this.#registry.pathOf(thread), turnId),
    );
    if (!turnIds) throw new AgentError('turnNotFound', { threadId, turnId }, 'no checkpoint of it is stored');
    return this.#turns.hold(threadId, async () => {
      const restored = await this.#restore(thread, { turnIds, paths, force, conversation: [] });
      if (!paths) recordTakenBack(this.#services.feed, this.#registry, threadId, turnId);
      return restored;
    });
  }

  /** Shows the changes of a turn, or of all turns of the thread. @throws AgentError turnNotFound, checkpointFailed */
  async diff(threadId: string, turnId: string | undefined, format: FileDiff['format']): Promise<Frozen<FileDiff>> {
    const thread = this.#registry.get(threadId);
    if (turnId !== undefined && !this.#registry.storeOf(threadId).turn(threadId, turnId)) {
      throw new AgentError('turnNotFound', { threadId, turnId });
    }
    // The sandboxes of an ended turn change the directory while they end.
    if (!this.#turns.of(threadId)) await this.#services.processes?.rest?.(threadId);
    const { diff, ...rest } = await this.#with((checkpoints) =>
      checkpoints.diff(threadId, this.#registry.pathOf(thread), turnId, format === 'unified'),
    );
    return { format, ...rest, ...(diff !== undefined && { diff: this.#services.clean(diff) }) };
  }

  /** Deletes these turns of a thread: the conversation's part of a restore. */
  takeBack(threadId: string, turnIds: readonly string[]): void {
    const { store, journal } = this.#registry.storageOf(threadId);
    // The thread may have been deleted since.
    if (!store.thread(threadId) || turnIds.length === 0) return;
    journal.flush();
    store.deleteTurns(threadId, turnIds);
  }

  /** Whether a stored thread works in a directory of its own, and in this one. */
  isInUse(directory: string): boolean {
    const threads = this.#registry.durable.store.threads();
    return threads.some(({ config }) => config?.workspaceOverride === directory);
  }

  /** Work of an unfinished turn, from its stored calls; undefined: none are stored. */
  workOf(threadId: string, turnId: string): TurnWork | undefined {
    const { turnActors } = this.#registry.durable.store;
    if (turnActors.get(threadId, turnId) === undefined) return undefined;
    const calls = [...turnActors.calls(threadId, turnId).values()];
    const inOrder = calls.sort((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt));
    return {
      lastWorkedAt: Math.max(
        0,
        ...calls.flatMap(({ endedAt }) => (endedAt === undefined ? [] : [Date.parse(endedAt)])),
      ),
      isWorking: calls.some(({ endedAt }) => endedAt === undefined),
      written: Object.fromEntries(inOrder.flatMap(({ file }) => (file ? [[file.path, file.after]] : []))),
    };
  }

  async #restore(thread: StoredThread, order: RestoreOrder): Promise<Frozen<RestoredFiles>> {
    const { id: threadId } = thread;
    const workspacePath = this.#registry.pathOf(thread);
    this.#requireIdle(thread, workspacePath);
    const request = { threadId, workspacePath, ...order };
    return this.#report(threadId, await this.#with((checkpoints) => checkpoints.restore(request)));
  }

  /** @throws AgentError turnInProgress, with the thread that runs a turn in these files; workspaceLost */
  #requireIdle(thread: StoredThread, workspacePath: string): void {
    const { id } = thread;
    requireHere(thread);
    requireWorkspace(this.#services.workspace);
    const running = this.#turns.of(id) ? id : this.#turns.running.threadIn(workspacePath);
    if (running !== undefined) throw new AgentError('turnInProgress', { threadId: running });
  }

  /** @throws AgentError restoreConflict */
  #report(threadId: string, result: FileRestore, act: FileAct = 'restored'): Frozen<RestoredFiles> {
    const { feed } = this.#services;
    if (result.kind === 'refused') {
      const { conflicts, conflictsTotal } = result;
      throw new AgentError(
        'restoreConflict',
        { threadId, conflicts, conflictsTotal },
        conflictWords(conflictsTotal, act),
      );
    }
    const { kind: _, ...restored } = result;
    const runningProcesses = this.#runningProcesses(threadId);
    const git = restored.git ? ` git: ${gitWords(restored.git)}.` : '';
    const message = `${restoredWords(restored.restoredTotal)}${git} Take it back with checkpoint/restore of ${restored.restoreId}.`;
    feed.publish(threadId, { method: 'system/event', params: { threadId, kind: 'filesRestored', message } });
    return { ...restored, ...(runningProcesses.length > 0 && { runningProcesses }) };
  }

  /** Background processes that still run: they may write to the files again. */
  #runningProcesses(threadId: string): BackgroundProcessInfo[] {
    const all = this.#services.processes?.list(threadId) ?? [];
    return all.filter(({ state }) => state !== 'ended' && state !== 'failed');
  }

  async #with<T>(work: (checkpoints: FileCheckpoints) => Promise<T>): Promise<T> {
    const { checkpoints } = this.#services;
    if (!checkpoints) throw new AgentError('checkpointFailed', {}, 'Checkpoints.Enabled is false');
    try {
      return await work(checkpoints);
    } catch (error) {
      if (error instanceof AgentError) throw error;
      throw new AgentError('checkpointFailed', {}, messageOf(error));
    }
  }
}
