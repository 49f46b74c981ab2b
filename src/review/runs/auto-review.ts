import { Pump } from '../../lib/index.ts';
import type { StoredItem } from '../store/index.ts';
import { enqueueReview, judge, type Place, placeOf, scopeOfPush } from './queue.ts';
import type { RunContext } from './types.ts';

/** Queues what is due by itself: every open item whose head has not been dispatched, and which the rules let through. */
export class AutoReview {
  readonly #context: RunContext;
  readonly #looks = new Pump(async () => {
    const queued = await this.#look();
    this.#queued += queued;
  });
  /** Reviews that the looks under way have queued. */
  #queued = 0;

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Looks once; calls during a look cause one more after it. @returns the number of reviews queued by these looks */
  async tick(): Promise<number> {
    if (!this.#looks.isRunning) this.#queued = 0;
    await this.#looks.request();
    return this.#queued;
  }

  async #look(): Promise<number> {
    const { store, times } = this.#context;
    const places = new Map<string, Place>();
    let queued = 0;
    let after: StoredItem | undefined;
    do {
      const page = await store.dueForAutoReview(times.autoPage, after);
      for (const item of page) {
        const place = places.get(item.repositoryKey) ?? (await placeOf(this.#context, item.repositoryKey));
        places.set(item.repositoryKey, place);
        if (await this.#queue(item, place)) queued += 1;
      }
      after = page.length < times.autoPage ? undefined : page.at(-1);
    } while (after);
    return queued;
  }

  /** @returns whether it was queued */
  async #queue(item: StoredItem, place: Place): Promise<boolean> {
    const { Review } = this.#context.settings();
    if (judge('auto', item, place, Review)) return false;
    const { isNew } = await enqueueReview(this.#context, item, {
      trigger: 'auto',
      scope: scopeOfPush[Review.OnPush],
      focus: null,
    });
    return isNew;
  }
}
