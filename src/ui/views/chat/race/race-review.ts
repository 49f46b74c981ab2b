import type { ReadonlySignal } from '@preact/signals';
import { type ActorRefFrom, createActor, fromPromise, type SnapshotFrom } from 'xstate';
import {
  type RaceAct,
  type RaceOutcome,
  type RaceReviewEvent,
  raceReviewMachine,
} from '../../../../../machines/browser.ts';
import type { Conversation } from '../data/conversation.ts';
import { conflictsOf } from '../data/rpc.ts';
import { snapshotSignal } from '../data/snapshot-signal.ts';

type Snapshot = SnapshotFrom<typeof raceReviewMachine>;

/** Applies attempts of a race, and undoes this. */
export class RaceReview {
  readonly #conversation: Conversation;
  readonly #actor: ActorRefFrom<typeof raceReviewMachine>;
  readonly #snapshot: ReadonlySignal<Snapshot>;

  constructor(conversation: Conversation, threadId: string) {
    this.#conversation = conversation;
    const act = fromPromise<RaceOutcome, RaceAct>(({ input }) => this.#act(input));
    this.#actor = createActor(raceReviewMachine.provide({ actors: { act } }), { input: { threadId } });
    this.#snapshot = snapshotSignal(this.#actor);
    this.#actor.start();
  }

  get state(): Snapshot {
    return this.#snapshot.value;
  }

  send(event: RaceReviewEvent): void {
    this.#actor.send(event);
  }

  close(): void {
    this.#actor.stop();
  }

  async #act({ threadId, order }: RaceAct): Promise<RaceOutcome> {
    try {
      if (order?.kind === 'apply') {
        await this.#conversation.call('thread/merge', { threadId: order.attemptId, force: order.force });
      }
      if (order?.kind === 'undo') {
        const { restoreId, force } = order;
        await this.#conversation.call('checkpoint/restore', { threadId, turnId: restoreId, force });
      }
      return { conflicts: [], conflictsTotal: 0 };
    } catch (error) {
      const refusal = conflictsOf(error);
      if (!refusal) throw error;
      return refusal;
    }
  }
}
