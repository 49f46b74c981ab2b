import { quotedPath } from '../../../config/index.ts';
import { messageOf, type PinnedDirectory } from '../../../lib/index.ts';
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
import type { AgentProblem } from '../../delegate.ts';
import { AgentError } from '../../errors.ts';
import type { StoredThread } from '../../thread-store.ts';
import type { OpenFork } from '../../worktrees/index.ts';
import { timestamp } from '../clock.ts';
import type { Feed } from '../feed.ts';
import type { FileCheckpoints, FileRestore, ForkThread, ThreadProcesses } from '../types.ts';
import { forkThread, inheritedBy, requireAgent } from './fork.ts';
import { recordApplied, recordTakenBack } from './race-record.ts';
import type { ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';
import { requireWorkspace } from './worktree.ts';

export interface ThreadFilesOptions {
  readonly registry: ThreadRegistry;
  readonly turns: Turns;
  readonly feed: Feed;
  /** Absent: files are not saved. */
  readonly checkpoints: FileCheckpoints | undefined;
  readonly processes: ThreadProcesses | undefined;
  readonly workspace: PinnedDirectory | undefined;
  /** Absent: forks have no directories of their own. */
  readonly openFork: OpenFork | undefined;
  /** See `ThreadServiceOptions`. */
  readonly agentProblem: ((name: string) => AgentProblem | undefined) | undefined;
  readonly read: (threadId: string) => Thread;
  /** Redacts secrets. */
  readonly clean: (text: string) => string;
}

interface RestoreOrder {
  readonly turnIds: readonly string[];
  readonly paths?: readonly string[] | undefined;
  readonly force: boolean;
  readonly conversation: readonly string[];
}

/** Takes back turns with their files, and shows their changes. */
export class ThreadFiles {
  readonly #options: ThreadFilesOptions;

  constructor(options: ThreadFilesOptions) {
    this.#options = options;
  }

  async undo(
    threadId: string,
    numTurns: number,
    force: boolean,
  ): Promise<{ readonly thread: Thread } & Frozen<RestoredFiles>> {
    const { registry, turns, read } = this.#options;
    const thread = registry.get(threadId);
    return turns.hold(threadId, async () => {
      const last = registry.storageOf(threadId).store.turns(threadId, { limit: numTurns });
      const turnIds = last.map(({ id }) => id);
      const files = await this.#restore(thread, { turnIds, force, conversation: turnIds });
      return { thread: read(threadId), ...files };
    });
  }

  async fork(threadId: string, { atTurnId, worktree, displayName, agent }: ForkThread) {
    const { registry, turns, feed, agentProblem } = this.#options;
    const original = registry.get(threadId);
    if (agent !== undefined) requireAgent(agent, agentProblem);
    const { store, journal } = registry.storageOf(threadId);
    journal.flush();
    if (atTurnId !== undefined && !store.turn(threadId, atTurnId)) {
      throw new AgentError('turnNotFound', { threadId, turnId: atTurnId });
    }
    const end = atTurnId === undefined ? undefined : { threadId, turnId: atTurnId };
    const place = worktree ? await this.#openFork(turns.pathOf(original), end) : undefined;
    const inherited = inheritedBy(original.config ?? {}, agent);
    const config = place === undefined ? inherited : { ...inherited, workspaceOverride: place };
    const isEphemeral = registry.isEphemeral(threadId);
    const newId = registry.newId(timestamp(), isEphemeral);
    const { thread } = forkThread({ store, original, newId, atTurnId, displayName, config });
    if (place !== undefined) {
      const workspacePath = turns.pathOf(original);
      await this.#with((checkpoints) => checkpoints.keepCopy(place, workspacePath));
    }
    const announce = () => {
      if (!isEphemeral) feed.broadcast({ method: 'thread/started', params: { thread } });
    };
    return { thread: this.#options.read(thread.id), announce };
  }

  async merge(threadId: string, force: boolean): Promise<Frozen<RestoredFiles>> {
    const { registry, turns } = this.#options;
    const fork = registry.get(threadId);
    const { forkedFromThreadId } = fork;
    const place = fork.config?.workspaceOverride;
    if (forkedFromThreadId === undefined || place === undefined) {
      throw new AgentError('checkpointFailed', { threadId }, 'the conversation is not a fork with a worktree');
    }
    const original = registry.get(forkedFromThreadId);
    const into = { threadId: original.id, workspacePath: turns.pathOf(original) };
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
        recordApplied(this.#options, threadId, merged.restoreId);
        return merged;
      }),
    );
  }

  /** @returns the directory with the files in it */
  async #openFork(workspacePath: string, end: { threadId: string; turnId: string } | undefined): Promise<string> {
    const { openFork, workspace } = this.#options;
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

  async list(threadId: string): Promise<readonly Frozen<Checkpoint>[]> {
    const thread = this.#options.registry.get(threadId);
    return this.#with((checkpoints) => checkpoints.list(threadId, this.#options.turns.pathOf(thread)));
  }

  async restore(
    threadId: string,
    turnId: string,
    { paths, force }: { readonly paths?: readonly string[] | undefined; readonly force: boolean },
  ): Promise<Frozen<RestoredFiles>> {
    const { registry, turns } = this.#options;
    const thread = registry.get(threadId);
    const turnIds = await this.#with((checkpoints) => checkpoints.turnsFrom(threadId, turns.pathOf(thread), turnId));
    if (!turnIds) throw new AgentError('turnNotFound', { threadId, turnId }, 'no checkpoint of it is stored');
    return turns.hold(threadId, async () => {
      const restored = await this.#restore(thread, { turnIds, paths, force, conversation: [] });
      if (!paths) recordTakenBack(this.#options, threadId, turnId);
      return restored;
    });
  }

  async diff(threadId: string, turnId: string | undefined, format: FileDiff['format']): Promise<Frozen<FileDiff>> {
    const { registry, turns, clean } = this.#options;
    const thread = registry.get(threadId);
    if (turnId !== undefined && !registry.storeOf(threadId).turn(threadId, turnId)) {
      throw new AgentError('turnNotFound', { threadId, turnId });
    }
    const { diff, ...rest } = await this.#with((checkpoints) =>
      checkpoints.diff(threadId, turns.pathOf(thread), turnId, format === 'unified'),
    );
    return { format, ...rest, ...(diff !== undefined && { diff: clean(diff) }) };
  }

  takeBack(threadId: string, turnIds: readonly string[]): void {
    const { registry } = this.#options;
    const { store, journal } = registry.storageOf(threadId);
    // The thread may have been deleted since.
    if (!store.thread(threadId) || turnIds.length === 0) return;
    journal.flush();
    store.deleteTurns(threadId, turnIds);
  }

  isInUse(directory: string): boolean {
    const threads = this.#options.registry.durable.store.threads();
    return threads.some(({ config }) => config?.workspaceOverride === directory);
  }

  async #restore(thread: StoredThread, order: RestoreOrder): Promise<Frozen<RestoredFiles>> {
    const { id: threadId } = thread;
    const workspacePath = this.#options.turns.pathOf(thread);
    this.#requireIdle(thread, workspacePath);
    const request = { threadId, workspacePath, ...order };
    return this.#report(threadId, await this.#with((checkpoints) => checkpoints.restore(request)));
  }

  /** @throws AgentError turnInProgress, with the thread that runs a turn in these files; workspaceLost */
  #requireIdle({ id }: StoredThread, workspacePath: string): void {
    const { turns, workspace } = this.#options;
    requireWorkspace(workspace);
    const running = turns.of(id) ? id : turns.runningIn(workspacePath);
    if (running !== undefined) throw new AgentError('turnInProgress', { threadId: running });
  }

  /** @throws AgentError restoreConflict */
  #report(threadId: string, result: FileRestore, act: FileAct = 'restored'): Frozen<RestoredFiles> {
    const { feed } = this.#options;
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
    const all = this.#options.processes?.list(threadId) ?? [];
    return all.filter(({ state }) => state !== 'ended' && state !== 'failed');
  }

  async #with<T>(work: (checkpoints: FileCheckpoints) => Promise<T>): Promise<T> {
    const { checkpoints } = this.#options;
    if (!checkpoints) throw new AgentError('checkpointFailed', {}, 'Checkpoints.Enabled is false');
    try {
      return await work(checkpoints);
    } catch (error) {
      if (error instanceof AgentError) throw error;
      throw new AgentError('checkpointFailed', {}, messageOf(error));
    }
  }
}
