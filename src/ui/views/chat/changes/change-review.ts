import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { type ActorRefFrom, createActor, fromPromise, type SnapshotFrom } from 'xstate';
import {
  type ChangeReading,
  type ChangeRestore,
  type ChangeReviewEvent,
  changeReviewMachine,
  type RestoreOutcome,
  type ReviewReading,
} from '../../../../../machines/browser.ts';
import type { FileDiff } from '../../../../protocol/index.ts';
import type { Conversation } from '../data/conversation.ts';
import { conflictsOf } from '../data/rpc.ts';
import { snapshotSignal } from '../data/snapshot-signal.ts';
import { keptPaths, marksKey, saveKept } from './kept-marks.ts';
import { type FileSection, sectionsOf } from './sections.ts';

type Snapshot = SnapshotFrom<typeof changeReviewMachine>;

/** Decisions of the user about the changes of one turn, or of a whole thread. */
export class ChangeReview {
  readonly #conversation: Conversation;
  readonly #actor: ActorRefFrom<typeof changeReviewMachine>;
  readonly #snapshot: ReadonlySignal<Snapshot>;
  readonly #diff = signal<FileDiff | null>(null);
  readonly #sections = computed(() => (this.#diff.value ? sectionsOf(this.#diff.value) : []));
  readonly #key: string;
  /** Another tab of this browser has kept a change. */
  readonly #follow = ({ key }: StorageEvent): void => {
    if (key === this.#key) this.send({ type: 'READ' });
  };

  /** @param turnId null: all turns of the thread that were not undone */
  constructor(conversation: Conversation, threadId: string, turnId: string | null) {
    this.#conversation = conversation;
    const machine = changeReviewMachine.provide({
      actors: {
        read: fromPromise<ReviewReading, ChangeReading>(({ input }) => this.#read(input)),
        restore: fromPromise<RestoreOutcome, ChangeRestore>(({ input }) => this.#restore(input)),
      },
    });
    this.#actor = createActor(machine, { input: { threadId, turnId } });
    this.#snapshot = snapshotSignal(this.#actor);
    this.#key = marksKey(threadId, turnId);
    addEventListener('storage', this.#follow);
    this.#actor.start();
  }

  get state(): Snapshot {
    return this.#snapshot.value;
  }

  /** Null before the first reading. */
  get diff(): ReadonlySignal<FileDiff | null> {
    return this.#diff;
  }

  /** The files of the diff, with their parts of the text. */
  get sections(): ReadonlySignal<readonly FileSection[]> {
    return this.#sections;
  }

  send(event: ChangeReviewEvent): void {
    this.#actor.send(event);
    if (event.type !== 'KEEP' && event.type !== 'RECONSIDER') return;
    saveKept(this.#key, this.#sections.peek(), this.#actor.getSnapshot().context.kept);
  }

  close(): void {
    removeEventListener('storage', this.#follow);
    this.#actor.stop();
  }

  async #read({ threadId, turnId }: ChangeReading): Promise<ReviewReading> {
    const asked = { threadId, format: 'unified', ...(turnId !== null && { turnId }) } as const;
    const diff = await this.#conversation.call('turn/diff', asked);
    this.#diff.value = diff;
    const isPutBack = new Set(diff.putBack.map(({ path }) => path));
    const kept = keptPaths(this.#key, this.#sections.peek()).filter((path) => !isPutBack.has(path));
    return { kept, reverted: diff.putBack };
  }

  async #restore({ threadId, turnId, order }: ChangeRestore): Promise<RestoreOutcome> {
    const { path, force } = order;
    const from = order.restoreId ?? turnId ?? (await this.#firstTurn(threadId));
    if (from === undefined) throw new Error('No checkpoint of this thread is stored.');
    try {
      const asked = { threadId, turnId: from, paths: [path], force };
      const { restoreId, changedMeanwhile, notCovered } = await this.#conversation.call('checkpoint/restore', asked);
      if (changedMeanwhile.length > 0) throw new Error(`${path} changed while it was put back, so it was left.`);
      if (notCovered.length > 0) throw new Error(`${path} is in no checkpoint, so it was left.`);
      return { restoreId, conflicts: [], conflictsTotal: 0 };
    } catch (error) {
      const refusal = conflictsOf(error);
      if (!refusal) throw error;
      return { restoreId: null, ...refusal };
    }
  }

  /** The oldest turn that was not undone and may have changed files. */
  async #firstTurn(threadId: string): Promise<string | undefined> {
    const { data } = await this.#conversation.call('checkpoint/list', { threadId });
    return data.find(({ kind, isUndone }) => kind === 'turn' && !isUndone)?.turnId;
  }
}
