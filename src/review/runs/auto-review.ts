import type { StoredItem } from '../store/index.ts';
import { enqueueReview, judge, type Place, placeOf, scopeOfPush } from './queue.ts';
import type { RunContext } from './types.ts';

/** Queues what is due by itself: every open item whose head has not been dispatched, and which the rules let through. */
export class AutoReview {
  readonly #context: RunContext;
  #running: Promise<number> | undefined;
  #again = false;

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** One look at a time; what comes meanwhile is looked at after it. @returns how many were queued */
  tick(): Promise<number> {
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#looks().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #looks(): Promise<number> {
    let queued = 0;
    do {
      this.#again = false;
      queued += await this.#look();
    } while (this.#again);
    return queued;
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
