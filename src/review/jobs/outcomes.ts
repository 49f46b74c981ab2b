import type { ReviewStore } from '../store/index.ts';
import type { News } from '../webhook/index.ts';
import type { Outcome, Outcomes } from './types.ts';

type DeliveryStore = Pick<ReviewStore, 'settleDeliveries' | 'setDeliveryOutcome'>;

/**
 * Saves and publishes the outcomes of deliveries. Many deliveries of one pull request can share one job, which knows only the first:
 * `pull` settles all queued ones.
 */
export class DeliveryOutcomes implements Outcomes {
  readonly #store: DeliveryStore;
  readonly #news: Pick<News, 'add'>;

  constructor(store: DeliveryStore, news: Pick<News, 'add'>) {
    this.#store = store;
    this.#news = news;
  }

  async delivery(deliveryId: string, { outcome, reason }: Outcome): Promise<void> {
    await this.#store.setDeliveryOutcome(deliveryId, outcome, reason);
    this.#news.add({ deliveryId, outcome });
  }

  async pull(repositoryKey: string, number: number, { outcome, reason }: Outcome): Promise<void> {
    const settled = await this.#store.settleDeliveries(repositoryKey, number, outcome, reason);
    for (const deliveryId of settled) this.#news.add({ deliveryId, outcome });
  }
}
