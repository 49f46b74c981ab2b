import { Pump } from '../../lib/index.ts';
import type { StoredItem } from '../store/index.ts';
import { enqueueReview, judge, placeOf, type RepositoryState, scopeOfPush } from './queue.ts';
import type { RunContext } from './types.ts';

/** Queues automatic reviews of all eligible open items whose head has not been dispatched. */
export class AutoReview {
  readonly #context: RunContext;
  readonly #scans = new Pump(async () => {
    const queued = await this.#scan();
    this.#queued += queued;
  });
  /** Reviews queued by the scans in progress. */
  #queued = 0;

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Scans once; calls during a scan cause one more scan after it. @returns the number of reviews queued by these scans */
  async tick(): Promise<number> {
    if (!this.#scans.isRunning) this.#queued = 0;
    await this.#scans.request();
    return this.#queued;
  }

  async #scan(): Promise<number> {
    const { store, times } = this.#context;
    const places = new Map<string, RepositoryState>();
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

  /** @returns whether a new run was queued */
  async #queue(item: StoredItem, place: RepositoryState): Promise<boolean> {
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
