import { Limit } from '../../../lib/index.ts';
import type { MoveBundle, MoveEndState, MoveStep, MoveStepResult } from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import { checkConversation, storeConversation, writeConversation } from '../../store/index.ts';
import { StorageError, type StoredThread } from '../../thread-store.ts';
import { timestamp } from '../clock.ts';
import type { RuntimeServices } from '../services.ts';
import type { FileCheckpoints } from '../types.ts';
import { hasRoom, MoveParts } from './move-parts.ts';
import { again, headWords, refused, requireElsewhere, requireQuiet, requireRest, unexpected } from './move-refusals.ts';
import { requireHere, type ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';
import { requireWorkspace } from './worktree.ts';

/** Paths that a refusal lists. */
const shownPaths = 10;
/** Steps of one conversation that wait for an earlier one. */
const maxWaiting = 10;
/** Cancelled moves whose late steps are refused. */
const maxCancelled = 100;

/**
 * One end of the move of a conversation. The source locks the conversation before it writes the transfer; the conversation becomes
 * visible at the target in one commit, which names the move. Each step may be repeated after the death of any process. Steps of a
 * conversation run one after another, and none runs after the cancellation of its move.
 */
export class ThreadMoves {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #turns: Turns;
  readonly #steps = new Limit();
  readonly #cancelled = new Set<string>();

  constructor(services: RuntimeServices, registry: ThreadRegistry, turns: Turns) {
    this.#services = services;
    this.#registry = registry;
    this.#turns = turns;
  }

  /** Runs one step. @throws AgentError moveRefused, threadNotFound, checkpointFailed, storageFailed, turnInProgress, workspaceLost */
  async step(step: MoveStep): Promise<MoveStepResult> {
    const { threadId } = step;
    if (step.step === 'state') {
      const answer = this.#answer(step);
      // A kill may have come between the commit and the deletion of the parts.
      if (answer.state === 'arrived') this.#parts(step).remove();
      return answer;
    }
    if (this.#steps.waiting(threadId) >= maxWaiting) throw new AgentError('turnInProgress', { threadId });
    return this.#steps.run(threadId, () =>
      this.#turns.hold(threadId, async () => {
        requireWorkspace(this.#services.workspace);
        try {
          return await this.#run(step);
        } catch (error) {
          if (error instanceof AgentError) throw error;
          if (error instanceof StorageError) throw new AgentError('storageFailed', { threadId }, error.message);
          throw unexpected(error);
        }
      }),
    );
  }

  async #run(step: MoveStep): Promise<MoveStepResult> {
    if (step.step !== 'cancel' && this.#cancelled.has(step.moveId))
      throw refused(`this move is cancelled, and the step "${step.step}" came too late. ${again}`);
    switch (step.step) {
      case 'prepare':
        return this.#prepare(step);
      case 'read':
        return this.#read(step);
      case 'receive':
        return this.#receive(step);
      case 'write':
        return this.#write(step);
      case 'commit':
        return this.#commit(step);
      case 'finish':
        return this.#finish(step);
      case 'cancel':
        return this.#cancel(step);
      case 'state':
        return this.#answer(step);
    }
  }

  #answer(step: MoveStep, more: Omit<MoveStepResult, 'state'> = {}): MoveStepResult {
    return { state: this.#stateOf(step), ...more };
  }

  #stateOf(step: MoveStep): MoveEndState {
    const { threadId, moveId } = step;
    const move = this.#registry.durable.store.thread(threadId)?.move;
    if (move?.id === moveId) return move.state;
    return move?.state !== 'leaving' && this.#parts(step).bundle ? 'receiving' : 'none';
  }

  /** Locks the conversation, then writes the parts of its transfer. */
  async #prepare(step: MoveStep): Promise<MoveStepResult> {
    const { threadId, moveId, place = '' } = step;
    const thread = this.#registry.get(threadId);
    const parts = this.#parts(step);
    if (thread.move?.id !== moveId) {
      requireHere(thread);
      requireRest(thread, this.#services, this.#registry, this.#turns);
    } else {
      if (thread.move.state !== 'leaving') return this.#answer(step);
      const { bundle } = parts;
      if (bundle) return this.#answer(step, { bundle });
    }
    this.#put({ ...thread, move: { id: moveId, state: 'leaving', place } });
    try {
      return this.#answer(step, { bundle: await this.#export(thread, parts) });
    } catch (error) {
      this.#release(threadId, moveId);
      parts.remove();
      throw error;
    }
  }

  async #export(thread: StoredThread, parts: MoveParts): Promise<MoveBundle> {
    const { id } = thread;
    this.#begin(parts);
    const { store, journal } = this.#registry.durable;
    journal.flush();
    await this.#services.processes?.rest?.(id);
    const { head, seq, entries } = await this.#files((files) =>
      files.depart(id, this.#registry.pathOf(thread), parts.file('files')),
    );
    await writeConversation(store, thread, parts.file('conversation'));
    const bundle = await parts.measure({ head, entries });
    const { move, ...locked } = this.#registry.get(id);
    if (move) this.#put({ ...locked, move: { ...move, departed: seq } });
    parts.describe(bundle);
    return bundle;
  }

  /** @throws AgentError moveRefused when too many moves are unfinished here */
  #begin(parts: MoveParts): void {
    const { moveDirectory } = this.#services;
    parts.remove();
    if (moveDirectory !== undefined && !hasRoom(moveDirectory))
      throw refused('too many moves of this workspace are unfinished. Wait until one ends: oratorio move --list');
    parts.begin();
  }

  #read(step: MoveStep): MoveStepResult {
    const { part, offset = 0 } = step;
    const parts = this.#parts(step);
    if (part === undefined || !parts.bundle || this.#stateOf(step) !== 'leaving')
      throw refused(`the source has not prepared it. ${again}`);
    return this.#answer(step, { data: parts.read(part, offset).toString('base64') });
  }

  /** Checks the target, and makes room for the parts. Nothing becomes visible. */
  async #receive(step: MoveStep): Promise<MoveStepResult> {
    const { threadId, moveId, bundle } = step;
    if (!bundle) throw refused(`the description of its parts is missing. ${again}`);
    const thread = this.#registry.durable.store.thread(threadId);
    if (thread?.move?.id === moveId && thread.move.state === 'arrived') return this.#answer(step);
    requireElsewhere(thread);
    const head = await this.#files((files) => files.head(this.#services.workspacePath));
    if (head !== bundle.head) throw refused(headWords(bundle.head, head));
    const parts = this.#parts(step);
    if (JSON.stringify(parts.bundle) !== JSON.stringify(bundle)) {
      this.#begin(parts);
      parts.describe(bundle);
    }
    return this.#answer(step, { received: parts.sizes });
  }

  #write(step: MoveStep): MoveStepResult {
    const { part, offset = 0, data = '' } = step;
    const parts = this.#parts(step);
    const { bundle } = parts;
    if (part === undefined || !bundle || this.#stateOf(step) !== 'receiving')
      throw refused(`the target does not expect its parts. ${again}`);
    const bytes = Buffer.from(data, 'base64');
    const has = parts.sizes[part];
    if (offset !== has || has + bytes.length > bundle.bytes[part])
      throw refused(
        `the target has ${has} of ${bundle.bytes[part]} bytes of its ${part}, and got ${bytes.length} more from ${offset} on. ${again}`,
      );
    parts.append(part, bytes);
    return this.#answer(step, { received: parts.sizes });
  }

  /** Brings the files, then makes the conversation visible in one commit: from then on it is here. */
  async #commit(step: MoveStep): Promise<MoveStepResult> {
    const { threadId, moveId, place = '' } = step;
    if (this.#stateOf(step) === 'arrived') return this.#answer(step);
    const parts = this.#parts(step);
    const { bundle } = parts;
    if (!bundle) throw refused(`the target does not have its parts. ${again}`);
    const damaged = await parts.damaged(bundle);
    if (damaged) {
      parts.remove();
      throw refused(`its ${damaged} arrived damaged. ${again}`);
    }
    const conversation = parts.file('conversation');
    await checkConversation(conversation, threadId);
    const { workspacePath } = this.#services;
    requireQuiet(this.#services, this.#turns);
    const { store } = this.#registry.durable;
    const earlier = store.thread(threadId);
    requireElsewhere(earlier);
    const departed = earlier?.move?.departed;
    const result = await this.#files((files) => files.arrive(threadId, workspacePath, parts.file('files'), departed));
    if (result.kind === 'refused') {
      const names = result.conflicts.slice(0, shownPaths).map(({ path }) => path);
      const more = result.conflictsTotal > names.length ? ` and ${result.conflictsTotal - names.length} more` : '';
      throw refused(
        `the target has changes of its own in ${names.join(', ')}${more}. Commit, stash or remove them there, then try again`,
      );
    }
    const move = { id: moveId, state: 'arrived', place } as const;
    store.transaction(() => storeConversation(store, conversation, { id: threadId, workspacePath, move }), true);
    parts.remove();
    const thread = store.thread(threadId);
    if (thread) this.#services.feed.broadcast({ method: 'thread/started', params: { thread } });
    return this.#answer(step);
  }

  /** The conversation is at the target: it stays here for reading only. */
  #finish(step: MoveStep): MoveStepResult {
    const { threadId, moveId } = step;
    const thread = this.#registry.get(threadId);
    if (thread.move?.id === moveId && thread.move.state === 'leaving') {
      this.#put({
        ...thread,
        ...{ status: 'archived', move: { ...thread.move, state: 'left' }, lastActiveAt: timestamp() },
      });
      this.#services.feed.broadcast({ method: 'thread/statusChanged', params: { threadId, status: 'archived' } });
    }
    this.#parts(step).remove();
    return this.#answer(step);
  }

  /** Releases the source, or forgets the parts at the target. A conversation that has arrived stays. */
  #cancel(step: MoveStep): MoveStepResult {
    const { threadId, moveId } = step;
    this.#release(threadId, moveId);
    this.#parts(step).remove();
    this.#cancelled.add(moveId);
    for (const oldest of this.#cancelled) if (this.#cancelled.size > maxCancelled) this.#cancelled.delete(oldest);
    return this.#answer(step);
  }

  #release(threadId: string, moveId: string): void {
    const thread = this.#registry.durable.store.thread(threadId);
    if (thread?.move?.id !== moveId || thread.move.state !== 'leaving') return;
    const { move: _, ...free } = thread;
    this.#put(free);
  }

  /** The record is durable before the other place learns of it. */
  #put(thread: StoredThread): void {
    const { store } = this.#registry.durable;
    store.transaction(() => store.putThread(thread), true);
  }

  #parts({ moveId }: MoveStep): MoveParts {
    const { moveDirectory } = this.#services;
    if (moveDirectory === undefined)
      throw refused('this server stores no conversations. Use a workspace that the Hub serves: oratorio up');
    return new MoveParts(moveDirectory, moveId);
  }

  async #files<T>(work: (files: FileCheckpoints) => Promise<T>): Promise<T> {
    const { checkpoints } = this.#services;
    if (!checkpoints)
      throw refused('Checkpoints.Enabled is false here, so the files cannot move. Set it to true, then try again');
    try {
      return await work(checkpoints);
    } catch (error) {
      throw unexpected(error);
    }
  }
}
