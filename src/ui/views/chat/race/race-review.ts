import { signal } from '@preact/signals';
import { type ActorRefFrom, createActor, fromPromise, type SnapshotFrom } from 'xstate';
import {
  type RaceAct,
  type RaceOutcome,
  type RaceReviewEvent,
  raceReviewMachine,
} from '../../../../../machines/browser.ts';
import type { Conversation } from '../data/conversation.ts';
import { conflictsOf } from '../data/rpc.ts';

type Snapshot = SnapshotFrom<typeof raceReviewMachine>;

/** Applies attempts of a race, and takes this back. */
export class RaceReview {
  readonly #conversation: Conversation;
  readonly #actor: ActorRefFrom<typeof raceReviewMachine>;
  readonly #snapshot: ReturnType<typeof signal<Snapshot>>;

  constructor(conversation: Conversation, threadId: string) {
    this.#conversation = conversation;
    const act = fromPromise<RaceOutcome, RaceAct>(({ input }) => this.#act(input));
    this.#actor = createActor(raceReviewMachine.provide({ actors: { act } }), { input: { threadId } });
    this.#snapshot = signal(this.#actor.getSnapshot());
    this.#actor.subscribe((snapshot) => {
      this.#snapshot.value = snapshot;
    });
    this.#actor.start();
  }

  get state(): Snapshot {
    return this.#snapshot.value as Snapshot;
  }

  send(event: RaceReviewEvent): void {
    this.#actor.send(event);
  }

  close(): void {
    this.#actor.stop();
  }

  async #act({ threadId, order }: RaceAct): Promise<RaceOutcome> {
    try {
      if (order?.kind === 'apply') await this.#conversation.call('thread/merge', { threadId: order.attemptId });
      if (order?.kind === 'undo') {
        const { restoreId, force } = order;
        await this.#conversation.call('checkpoint/restore', { threadId, turnId: restoreId, force });
      }
      return { conflicts: [] };
    } catch (error) {
      const conflicts = conflictsOf(error);
      if (!conflicts) throw error;
      return { conflicts };
    }
  }
}
