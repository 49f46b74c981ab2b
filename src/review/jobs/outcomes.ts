import type { ReviewStore } from '../store/index.ts';
import type { DeliveryPublisher } from '../webhook/index.ts';
import type { Outcome, Outcomes } from './types.ts';

type DeliveryStore = Pick<ReviewStore, 'settleDeliveries' | 'setDeliveryOutcome'>;

/**
 * Saves and publishes the outcomes of deliveries. Many deliveries of one pull request can share one job, which knows only the first:
 * `pull` settles all queued ones.
 */
export class DeliveryOutcomes implements Outcomes {
  readonly #store: DeliveryStore;
  readonly #deliveries: Pick<DeliveryPublisher, 'add'>;

  constructor(store: DeliveryStore, deliveries: Pick<DeliveryPublisher, 'add'>) {
    this.#store = store;
    this.#deliveries = deliveries;
  }

  async delivery(deliveryId: string, { outcome, reason }: Outcome): Promise<void> {
    await this.#store.setDeliveryOutcome(deliveryId, outcome, reason);
    this.#deliveries.add({ deliveryId, outcome });
  }

  async pull(repositoryKey: string, number: number, { outcome, reason }: Outcome): Promise<void> {
    const settled = await this.#store.settleDeliveries(repositoryKey, number, outcome, reason);
    for (const deliveryId of settled) this.#deliveries.add({ deliveryId, outcome });
  }
}
