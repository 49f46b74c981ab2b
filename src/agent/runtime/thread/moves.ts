import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { ensurePrivateDirectory, messageOf, readJson, writeFileAtomic } from '../../../lib/index.ts';
import {
  MoveBundle,
  type MoveEndState,
  type MovePart,
  type MoveStep,
  type MoveStepResult,
  moveParts,
  movePieceBytes,
} from '../../../protocol/index.ts';
import { AgentError } from '../../errors.ts';
import { checkConversation, storeConversation, writeConversation } from '../../store/index.ts';
import { StorageError, type StoredThread } from '../../thread-store.ts';
import { timestamp } from '../clock.ts';
import type { RuntimeServices } from '../services.ts';
import type { FileCheckpoints } from '../types.ts';
import { requireHere, type ThreadRegistry } from './registry.ts';
import type { Turns } from './turns.ts';
import { requireWorkspace } from './worktree.ts';

const fileNames: Readonly<Record<MovePart, string>> = { conversation: 'conversation.jsonl', files: 'files.bin' };
const bundleFile = 'bundle.json';
/** Paths that a refusal lists. */
const shownPaths = 10;

/**
 * One end of the move of a conversation. The source locks the conversation before it writes the transfer; the conversation becomes
 * visible at the target in one commit, which names the move. Each step may be repeated after the death of any process.
 */
export class ThreadMoves {
  readonly #services: RuntimeServices;
  readonly #registry: ThreadRegistry;
  readonly #turns: Turns;

  constructor(services: RuntimeServices, registry: ThreadRegistry, turns: Turns) {
    this.#services = services;
    this.#registry = registry;
    this.#turns = turns;
  }

  /** Runs one step. @throws AgentError moveRefused, threadNotFound, checkpointFailed, storageFailed, turnInProgress, workspaceLost */
  async step(step: MoveStep): Promise<MoveStepResult> {
    if (step.step === 'state') return this.#answer(step);
    return this.#turns.hold(step.threadId, async () => {
      requireWorkspace(this.#services.workspace);
      try {
        return await this.#run(step);
      } catch (error) {
        if (error instanceof AgentError) throw error;
        if (error instanceof StorageError)
          throw new AgentError('storageFailed', { threadId: step.threadId }, error.message);
        throw new AgentError('moveRefused', { threadId: step.threadId }, messageOf(error));
      }
    });
  }

  async #run(step: MoveStep): Promise<MoveStepResult> {
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
    return existsSync(join(this.#directory(step), bundleFile)) && move?.state !== 'leaving' ? 'receiving' : 'none';
  }

  /** Locks the conversation, then writes the parts of its transfer. */
  async #prepare(step: MoveStep): Promise<MoveStepResult> {
    const { threadId, moveId, place = '' } = step;
    const thread = this.#registry.get(threadId);
    if (thread.move?.id !== moveId) {
      requireHere(thread);
      this.#requireRest(thread);
    }
    if (thread.move?.id === moveId && thread.move.state !== 'leaving') return this.#answer(step);
    const directory = this.#directory(step);
    const known = this.#bundleIn(directory);
    if (known && thread.move?.id === moveId) return this.#answer(step, { bundle: known });
    this.#registry.update(threadId, { move: { id: moveId, state: 'leaving', place } });
    try {
      const bundle = await this.#export(thread, directory);
      return this.#answer(step, { bundle });
    } catch (error) {
      this.#release(threadId, moveId);
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async #export(thread: StoredThread, directory: string): Promise<MoveBundle> {
    const { id } = thread;
    rmSync(directory, { recursive: true, force: true });
    ensurePrivateDirectory(directory);
    const { store, journal } = this.#registry.durable;
    journal.flush();
    await this.#services.processes?.rest?.(id);
    const { head, seq, entries } = await this.#files((files) =>
      files.depart(id, this.#registry.pathOf(thread), join(directory, fileNames.files)),
    );
    await writeConversation(store, thread, join(directory, fileNames.conversation));
    const bytes = { conversation: 0, files: 0 };
    const sha256 = { conversation: '', files: '' };
    for (const part of moveParts) {
      const file = join(directory, fileNames[part]);
      bytes[part] = statSync(file).size;
      sha256[part] = await digestOf(file);
    }
    const bundle = v.parse(MoveBundle, { version: 1, head, entries, bytes, sha256 });
    const { move } = this.#registry.get(id);
    if (move) this.#registry.update(id, { move: { ...move, departed: seq } });
    writeFileAtomic(join(directory, bundleFile), JSON.stringify(bundle));
    return bundle;
  }

  /** @throws AgentError moveRefused for a conversation that would lose something */
  #requireRest(thread: StoredThread): void {
    const { id, status, config, parentThreadId, isTransient } = thread;
    const { store } = this.#registry.durable;
    const { processes, delegate } = this.#services;
    const running = (processes?.list(id) ?? []).filter(({ state }) => state !== 'ended' && state !== 'failed');
    const [last] = store.turns(id, { limit: 1 });
    const problems: readonly (readonly [boolean, string])[] = [
      [this.#registry.isEphemeral(id) || isTransient === true, 'it belongs to one request and is not stored'],
      [parentThreadId !== undefined, 'it belongs to a sub-agent. Move the conversation that started it'],
      [status !== 'active', 'it is archived. Restore it on the page first'],
      [this.#turns.of(id) !== undefined, 'a turn is running. Wait until the turn ends, or interrupt it'],
      [
        last !== undefined && last.completedAt === undefined,
        'its last turn has not ended. Start its agent server, and wait',
      ],
      [store.queue(id).length > 0, 'inputs are queued. Remove them, or wait until they are done'],
      [running.length > 0, `${running.length} background processes run and cannot move. Stop them first`],
      [
        config?.agent !== undefined || delegate !== undefined || store.agentSession(id) !== undefined,
        'an external agent keeps its session on this machine. Start a conversation there instead',
      ],
      [config?.workspaceOverride !== undefined, 'it works in a worktree of its own. Merge it first: oratorio merge'],
    ];
    const problem = problems.find(([isGiven]) => isGiven);
    if (problem) throw new AgentError('moveRefused', { threadId: id }, `the conversation cannot move: ${problem[1]}`);
    this.#requireQuiet();
  }

  /** @throws AgentError moveRefused while a turn of another conversation changes the files */
  #requireQuiet(): void {
    const other = this.#turns.running.threadIn(this.#services.workspacePath);
    if (other !== undefined) throw refused(`a turn of ${other} works in its files. Wait for its end, then try again`);
  }

  #read(step: MoveStep): MoveStepResult {
    const { part, offset = 0 } = step;
    const directory = this.#directory(step);
    if (part === undefined || !this.#bundleIn(directory) || this.#stateOf(step) !== 'leaving')
      throw refused('it is not prepared');
    const fd = openSync(join(directory, fileNames[part]), 'r');
    try {
      const bytes = Buffer.allocUnsafe(movePieceBytes);
      const length = readSync(fd, bytes, 0, bytes.length, offset);
      return this.#answer(step, { data: bytes.subarray(0, length).toString('base64') });
    } finally {
      closeSync(fd);
    }
  }

  /** Checks the target, and makes room for the parts. Nothing becomes visible. */
  async #receive(step: MoveStep): Promise<MoveStepResult> {
    const { threadId, moveId, bundle } = step;
    if (!bundle) throw refused('the description of its parts is missing');
    const thread = this.#registry.durable.store.thread(threadId);
    if (thread?.move?.id === moveId && thread.move.state === 'arrived') return this.#answer(step);
    if (thread && thread.move?.state !== 'left') throw refused(`a conversation ${threadId} is already at the target`);
    const head = await this.#files((files) => files.head(this.#services.workspacePath));
    if (head !== bundle.head) throw refused(headWords(bundle.head, head));
    const directory = this.#directory(step);
    const known = this.#bundleIn(directory);
    if (JSON.stringify(known) !== JSON.stringify(bundle)) {
      rmSync(directory, { recursive: true, force: true });
      ensurePrivateDirectory(directory);
      writeFileAtomic(join(directory, bundleFile), JSON.stringify(bundle));
    }
    return this.#answer(step, { received: this.#received(directory) });
  }

  #write(step: MoveStep): MoveStepResult {
    const { part, offset = 0, data = '' } = step;
    const directory = this.#directory(step);
    const bundle = this.#bundleIn(directory);
    if (part === undefined || !bundle || this.#stateOf(step) !== 'receiving')
      throw refused('the target does not expect it');
    const bytes = Buffer.from(data, 'base64');
    const has = this.#received(directory)[part];
    if (offset !== has || has + bytes.length > bundle.bytes[part])
      throw refused(`the target has ${has} bytes of its ${part}, and got more from ${offset} on`);
    const fd = openSync(join(directory, fileNames[part]), 'a', 0o600);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    } finally {
      closeSync(fd);
    }
    return this.#answer(step, { received: this.#received(directory) });
  }

  /** Brings the files, then makes the conversation visible in one commit: from then on it is here. */
  async #commit(step: MoveStep): Promise<MoveStepResult> {
    const { threadId, moveId, place = '' } = step;
    if (this.#stateOf(step) === 'arrived') return this.#answer(step);
    const directory = this.#directory(step);
    const bundle = this.#bundleIn(directory);
    if (!bundle) throw refused('the target does not have its parts');
    for (const part of moveParts) {
      const file = join(directory, fileNames[part]);
      if (bundle.bytes[part] === 0 && !existsSync(file)) closeSync(openSync(file, 'a', 0o600));
      if ((await digestOf(file)) !== bundle.sha256[part]) {
        rmSync(directory, { recursive: true, force: true });
        throw refused(`its ${part} arrived damaged. Try again`);
      }
    }
    const conversation = join(directory, fileNames.conversation);
    await checkConversation(conversation, threadId);
    const { workspacePath } = this.#services;
    this.#requireQuiet();
    const { store } = this.#registry.durable;
    const departed = store.thread(threadId)?.move?.departed;
    const result = await this.#files((files) =>
      files.arrive(threadId, workspacePath, join(directory, fileNames.files), departed),
    );
    if (result.kind === 'refused') {
      const names = result.conflicts.slice(0, shownPaths).map(({ path }) => path);
      const more = result.conflictsTotal > names.length ? ` and ${result.conflictsTotal - names.length} more` : '';
      throw refused(
        `the target has changes of its own in ${names.join(', ')}${more}. Commit, stash or remove them there, then try again`,
      );
    }
    const move = { id: moveId, state: 'arrived', place } as const;
    store.transaction(() => storeConversation(store, conversation, { id: threadId, workspacePath, move }), true);
    rmSync(directory, { recursive: true, force: true });
    const thread = store.thread(threadId);
    if (thread) this.#services.feed.broadcast({ method: 'thread/started', params: { thread } });
    return this.#answer(step);
  }

  /** The conversation is at the target: it stays here for reading only. */
  #finish(step: MoveStep): MoveStepResult {
    const { threadId, moveId } = step;
    const thread = this.#registry.get(threadId);
    if (thread.move?.id === moveId && thread.move.state === 'leaving') {
      this.#registry.update(threadId, {
        status: 'archived',
        move: { ...thread.move, state: 'left' },
        lastActiveAt: timestamp(),
      });
      this.#services.feed.broadcast({ method: 'thread/statusChanged', params: { threadId, status: 'archived' } });
    }
    rmSync(this.#directory(step), { recursive: true, force: true });
    return this.#answer(step);
  }

  /** Releases the source, or forgets the parts at the target. A conversation that has arrived stays. */
  #cancel(step: MoveStep): MoveStepResult {
    const { threadId, moveId } = step;
    this.#release(threadId, moveId);
    const directory = this.#directory(step);
    const trash = `${directory}.cancelled`;
    rmSync(trash, { recursive: true, force: true });
    if (existsSync(directory)) renameSync(directory, trash);
    rmSync(trash, { recursive: true, force: true });
    return this.#answer(step);
  }

  #release(threadId: string, moveId: string): void {
    const { store } = this.#registry.durable;
    const thread = store.thread(threadId);
    if (thread?.move?.id !== moveId || thread.move.state !== 'leaving') return;
    const { move: _, ...free } = thread;
    store.transaction(() => store.putThread(free), true);
  }

  #directory({ moveId }: MoveStep): string {
    const { moveDirectory } = this.#services;
    if (moveDirectory === undefined) throw refused('this server stores no conversations');
    return join(moveDirectory, moveId);
  }

  #bundleIn(directory: string): MoveBundle | undefined {
    const read = readJson(join(directory, bundleFile), MoveBundle);
    return read.kind === 'ok' ? read.value : undefined;
  }

  #received(directory: string): Record<MovePart, number> {
    const sizeOf = (part: MovePart) => statSync(join(directory, fileNames[part]), { throwIfNoEntry: false })?.size ?? 0;
    return { conversation: sizeOf('conversation'), files: sizeOf('files') };
  }

  async #files<T>(work: (files: FileCheckpoints) => Promise<T>): Promise<T> {
    const { checkpoints } = this.#services;
    if (!checkpoints) throw refused('Checkpoints.Enabled is false here: the files cannot move');
    try {
      return await work(checkpoints);
    } catch (error) {
      throw refused(messageOf(error));
    }
  }
}

const refused = (detail: string): AgentError => new AgentError('moveRefused', {}, detail);

const shortCommit = (commit: string | null): string => (commit === null ? 'none' : commit.slice(0, 12));

const headWords = (source: string | null, target: string | null): string =>
  source === null
    ? `the workspace has no commit, and the target has ${shortCommit(target)}. Choose a directory without a repository`
    : `the commits differ: ${shortCommit(source)} at the source, ${shortCommit(target)} at the target. Push the commit, and check it out there: git checkout ${source}`;

/** SHA-256 of a file, which is durable afterwards. */
async function digestOf(file: string): Promise<string> {
  const fd = openSync(file, 'r+');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
