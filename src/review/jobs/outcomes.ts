import type { ReviewStore } from '../store/index.ts';
import { limits } from './limits.ts';
import type { Outcome, Outcomes } from './types.ts';

type DeliveryStore = Pick<ReviewStore, 'deliveries' | 'setDeliveryOutcome'>;

const keyOf = (repositoryKey: string | undefined, number: number | undefined): string => `${repositoryKey}#${number}`;

/**
 * Brings deliveries to their end. Many deliveries of one pull request lead to one job, which knows only the first of them, so
 * those that wait are looked through; jobs that end together do that together.
 */
export class DeliveryOutcomes implements Outcomes {
  readonly #store: DeliveryStore;
  #next: { readonly wanted: Map<string, Outcome>; readonly done: Promise<void> } | undefined;

  constructor(store: DeliveryStore) {
    this.#store = store;
  }

  async delivery(deliveryId: string, { outcome, reason }: Outcome): Promise<void> {
    await this.#store.setDeliveryOutcome(deliveryId, outcome, reason);
  }

  pull(repositoryKey: string, number: number, outcome: Outcome): Promise<void> {
    this.#next ??= this.#gather();
    this.#next.wanted.set(keyOf(repositoryKey, number), outcome);
    return this.#next.done;
  }

  #gather() {
    const wanted = new Map<string, Outcome>();
    const done = new Promise<void>((resolve) => setTimeout(resolve, limits.settleMs)).then(() => {
      this.#next = undefined;
      return this.#settle(wanted);
    });
    return { wanted, done };
  }

  async #settle(wanted: ReadonlyMap<string, Outcome>): Promise<void> {
    let cursor: string | undefined;
    for (let page = 0; page < limits.settlePages; page += 1) {
      const filter = { outcome: 'queued', limit: limits.settlePage, ...(cursor !== undefined && { cursor }) };
      const { rows, next } = await this.#store.deliveries(filter);
      const ours = rows.flatMap(({ deliveryId, event, repositoryKey, number }) => {
        const outcome = event === 'pull_request' ? wanted.get(keyOf(repositoryKey, number)) : undefined;
        return outcome ? [this.delivery(deliveryId, outcome)] : [];
      });
      await Promise.all(ours);
      if (next === undefined) return;
      cursor = next;
    }
  }
}
