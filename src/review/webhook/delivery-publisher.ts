import type { Logger } from '../../log/index.ts';
import { type ReviewStore, retryLevel } from '../store/index.ts';
import { limits } from './limits.ts';

export interface DeliveryEvent {
  readonly deliveryId: string;
  /** Event name, known on arrival; an event about the outcome lacks it. */
  readonly event?: string;
  readonly outcome: string;
}

/**
 * Publishes deliveries, and their outcomes, in one event per moment: a separate write for each would cost as much as the delivery
 * itself.
 */
export class DeliveryPublisher {
  readonly #store: Pick<ReviewStore, 'publish'>;
  readonly #logger: Logger;
  #count = 0;
  #latest: DeliveryEvent[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(store: Pick<ReviewStore, 'publish'>, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  add(delivery: DeliveryEvent): void {
    this.#count += 1;
    if (this.#latest.length < limits.newsIds) this.#latest.push(delivery);
    this.#timer ??= setTimeout(() => this.#send(), limits.newsMs);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#count === 0) return;
    const data = { count: this.#count, deliveries: this.#latest };
    this.#count = 0;
    this.#latest = [];
    const sent = this.#store.publish('delivery.received', data).catch((error: unknown) => {
      this.#logger[retryLevel(error)]('could not publish deliveries', { error });
    });
    this.#sending = this.#sending.then(() => sent);
  }

  /** Publishes pending deliveries. */
  async close(): Promise<void> {
    this.#send();
    await this.#sending;
  }
}
