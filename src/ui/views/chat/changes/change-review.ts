import { type ReadonlySignal, signal } from '@preact/signals';
import { type ActorRefFrom, createActor, fromPromise, type SnapshotFrom } from 'xstate';
import {
  type ChangeRestore,
  type ChangeReviewEvent,
  changeReviewMachine,
  type RestoreOutcome,
} from '../../../../../machines/browser.ts';
import type { FileDiff } from '../../../../protocol/index.ts';
import type { Conversation } from '../data/conversation.ts';
import { conflictsOf } from '../data/rpc.ts';
import { snapshotSignal } from '../data/snapshot-signal.ts';

type Snapshot = SnapshotFrom<typeof changeReviewMachine>;

/** Decisions of the person about what one turn, or a whole thread, has changed. */
export class ChangeReview {
  readonly #conversation: Conversation;
  readonly #actor: ActorRefFrom<typeof changeReviewMachine>;
  readonly #snapshot: ReadonlySignal<Snapshot>;
  readonly #diff = signal<FileDiff | null>(null);

  /** @param turnId null: all turns of the thread that were not taken back */
  constructor(conversation: Conversation, threadId: string, turnId: string | null) {
    this.#conversation = conversation;
    const machine = changeReviewMachine.provide({
      actors: {
        read: fromPromise(async () => {
          const asked = { threadId, format: 'unified', ...(turnId !== null && { turnId }) } as const;
          this.#diff.value = await conversation.call('turn/diff', asked);
        }),
        restore: fromPromise<RestoreOutcome, ChangeRestore>(({ input }) => this.#restore(input)),
      },
    });
    this.#actor = createActor(machine, { input: { threadId, turnId } });
    this.#snapshot = snapshotSignal(this.#actor);
    this.#actor.start();
  }

  get state(): Snapshot {
    return this.#snapshot.value;
  }

  /** Null before the first reading. */
  get diff(): ReadonlySignal<FileDiff | null> {
    return this.#diff;
  }

  send(event: ChangeReviewEvent): void {
    this.#actor.send(event);
  }

  close(): void {
    this.#actor.stop();
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
      return { restoreId, conflicts: [] };
    } catch (error) {
      const conflicts = conflictsOf(error);
      if (!conflicts) throw error;
      return { restoreId: null, conflicts };
    }
  }

  /** The oldest turn that was not taken back and may have changed files. */
  async #firstTurn(threadId: string): Promise<string | undefined> {
    const { data } = await this.#conversation.call('checkpoint/list', { threadId });
    return data.find(({ kind, isUndone }) => kind === 'turn' && !isUndone)?.turnId;
  }
}
